// Shrinks a failing schedule by delta debugging: drops parts of its steps as long as the same check still fails.
import { type Result, runSchedule } from "./run.ts";
import type { Step } from "./steps.ts";

/** Returns the shortest schedule found that still violates what this one does first. */
export async function shrink(result: Result): Promise<Result> {
  const { plan } = result;
  const wanted = result.violations[0]?.check;
  const fails = async (steps: readonly Step[]): Promise<boolean> =>
    (await runSchedule(plan, { steps })).violations.some(({ check }) => check === wanted);
  let steps = result.steps;
  // Draws nothing: if the same steps do not fail, something in them depends on chance.
  if (!(await fails(steps))) return result;
  for (let parts = 2; steps.length > 0; ) {
    const size = Math.ceil(steps.length / parts);
    const smaller = await firstFailing(steps, size, fails);
    if (smaller !== undefined) {
      steps = smaller;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) break;
    else parts = Math.min(steps.length, parts * 2);
  }
  return runSchedule(plan, { steps, hasTimeline: true });
}

async function firstFailing(
  steps: readonly Step[],
  size: number,
  fails: (steps: readonly Step[]) => Promise<boolean>,
): Promise<readonly Step[] | undefined> {
  for (let from = 0; from < steps.length; from += size) {
    const rest = [...steps.slice(0, from), ...steps.slice(from + size)];
    if (await fails(rest)) return rest;
  }
  return undefined;
}
