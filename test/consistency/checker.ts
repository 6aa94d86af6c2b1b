// Checks a recorded history against guarantees 1 to 6 of api.md, section 4.
import { boundedCalls } from "./bounded-calls.ts";
import { Evidence, type Violation } from "./evidence.ts";
import type { History } from "./history.ts";
import { loadErrors } from "./load-errors.ts";
import { needlessLoads } from "./single-loads.ts";
import { staleReads } from "./stale-reads.ts";

/** The violations, in the order they began. */
export function check(history: History): Violation[] {
  const evidence = new Evidence(history);
  const violations = [staleReads, needlessLoads, loadErrors, boundedCalls].flatMap((rule) => rule(evidence));
  return violations.sort((one, other) => one.to - other.to);
}

/** How much a run has exercised. */
export interface Counts {
  readonly calls: number;
  readonly loads: number;
  /** Values served without a load for the call. */
  readonly hits: number;
  /** Of these, those that another process had stored. */
  readonly shared: number;
  readonly changes: number;
  /** Changes that failed: their outcome was not known. */
  readonly unconfirmed: number;
  readonly faults: number;
  readonly longestLagMs: number;
}

export function count(history: History): Counts {
  const { sources, changes, faults } = new Evidence(history);
  let hits = 0;
  let shared = 0;
  for (const call of history.calls) {
    for (const { id } of call.values ?? []) {
      const source = sources.get(id);
      if (source === undefined || (source.load ?? source.set)!.end >= call.start) continue;
      hits++;
      if (source.worker !== call.worker) shared++;
    }
  }
  return {
    calls: history.calls.length,
    loads: history.loads.length,
    hits,
    shared,
    changes: changes.length,
    unconfirmed: changes.filter(({ failure }) => failure !== undefined).length,
    faults: faults.length,
    longestLagMs: Math.max(0, ...history.lags.map(({ start, end }) => end - start)),
  };
}
