// What the simulation offers to the script and the tests, which run it as one bundle with the sources.
import type { Check } from "./checks.ts";
import { type Result, runSeed } from "./run.ts";
import { shrink } from "./shrink.ts";
import { describeResult } from "./timeline.ts";
import { realTurn } from "./turn.ts";

export { DRILLS } from "./drills.ts";
export { MUTATIONS } from "./mutations.ts";
export { runSeed };

export interface SimulationOptions {
  readonly seed: number;
  readonly schedules: number;
  /** Only violations of this check count. */
  readonly only?: Check;
  /** Only schedules of this drill. */
  readonly drill?: string | undefined;
}

export interface Simulation {
  readonly schedules: number;
  /** How often each check failed, and the first seeds. */
  readonly failures: Readonly<Record<string, { count: number; readonly seeds: number[] }>>;
  /** The first failing schedule. */
  readonly first: Result | undefined;
}

const MOST_SEEDS = 5;

/** Runs schedules with consecutive seeds; with `stops` only until the first violation. */
export async function simulate(options: SimulationOptions, stops = false): Promise<Simulation> {
  const { seed, schedules, only, drill } = options;
  const failures: Record<string, { count: number; seeds: number[] }> = {};
  let first: Result | undefined;
  let count = 0;
  while (count < schedules) {
    const result = await runSeed(seed + count++, { drill });
    const violations = result.violations.filter(({ check }) => only === undefined || check === only);
    // Other work of the thread is not kept waiting for long.
    if (count % 100 === 0) await realTurn();
    if (violations.length === 0) continue;
    first ??= { ...result, violations };
    for (const check of new Set(violations.map((violation) => violation.check))) {
      const failure = failures[check] ?? { count: 0, seeds: [] };
      failures[check] = failure;
      failure.count++;
      if (failure.seeds.length < MOST_SEEDS) failure.seeds.push(result.plan.settings.seed);
    }
    if (stops) break;
  }
  return { schedules: count, failures, first };
}

/** The processor time that this process has taken, in milliseconds: a busy machine changes it little. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

export const memoryMb = (): number => process.memoryUsage().rss / 2 ** 20;

/** The shortest schedule that still fails, as text. */
export async function explain(result: Result): Promise<string> {
  return describeResult(await shrink(result));
}

export { coverageOf, differencesIn } from "./exhaustive/coverage.ts";
export { explore } from "./exhaustive/explore.ts";
export { programs } from "./exhaustive/programs.ts";
