// Guarantees 1 and 5: one load of a key between invalidations across all processes, even after a hard timeout.
import { type Evidence, grouped, type Violation } from "./evidence.ts";
import type { LoadRun } from "./history.ts";

export function needlessLoads(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const [key, loads] of grouped(evidence.history.loads, (load) => load.key)) {
    for (const [at, second] of loads.entries()) {
      const first = loads[at - 1];
      if (first === undefined || !isNeedless(evidence, first, second)) continue;
      const timeout = timedOut(evidence, first, second.start);
      const how = second.start < first.end ? "while it ran" : "after its end";
      violations.push({
        guarantee: timeout === undefined ? 1 : 5,
        message:
          `${key} was loaded by process ${second.worker} (${second.id}) ${how} of the load by process ` +
          `${first.worker} (${first.id}), and nothing was invalidated between their beginnings` +
          (timeout === undefined ? "" : `; call ${timeout} had run into its hard timeout`),
        key,
        from: first.start - 100,
        to: second.end,
      });
    }
  }
  return violations;
}

function isNeedless(evidence: Evidence, first: LoadRun, second: LoadRun): boolean {
  if (second.start >= first.end) {
    if (first.outcome !== "value") return false;
    // Copies expire early by up to the clock difference, never late.
    if (second.start >= first.end + first.ttlMs / 2) return false;
  }
  // Loads without a lease run in parallel with others, and are not stored for them.
  if (hasWaitedInVain(evidence, first) || hasWaitedInVain(evidence, second)) return false;
  return evidence.whyVoid(first, second.start, [second.worker]) === undefined;
}

/** Whether its process had waited for another's load that ended without a value: then it does not wait again. */
function hasWaitedInVain({ history }: Evidence, { call, key, worker, start }: LoadRun): boolean {
  const waits = history.calls.filter(
    (each) => each.id === call || (each.worker === worker && each.keys?.includes(key)),
  );
  return history.loads.some(
    (load) =>
      load.key === key &&
      load.worker !== worker &&
      load.outcome !== "value" &&
      load.end <= start &&
      waits.some((each) => each.start <= load.end && (each.id === call || each.end >= load.end)),
  );
}

/** A call that stopped waiting for a load at its hard timeout. */
function timedOut({ history }: Evidence, load: LoadRun, before: number): string | undefined {
  return history.calls.find(
    (call) =>
      call.failure?.code === "LOAD_TIMEOUT" &&
      call.worker === load.worker &&
      call.keys?.includes(load.key) &&
      call.end >= load.start &&
      call.end <= before,
  )?.id;
}
