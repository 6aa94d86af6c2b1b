// Guarantee 6: a failing store delays a call little, fails no getOrSet, and is used again once it recovers.
import {
  type Evidence,
  grouped,
  OPERATION_TIMEOUT_MS,
  RESUME_MS,
  SLACK_MS,
  type Violation,
} from "./evidence.ts";
import type { Call } from "./history.ts";

/** A holder whose release did not reach the store keeps others waiting until its lease expires. */
const LEASE_MS = 6_000;
/** "Microseconds", on a machine where other processes may take the core for a while. */
const AT_ONCE_MS = 200;

export function boundedCalls(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const loading = loadingTimes(evidence);
  for (const call of evidence.history.calls) {
    const took = call.end - call.start;
    const allowed = allowedMs(evidence, call, loading.get(call.keys?.[0] ?? "") ?? []);
    if (took > allowed) {
      violations.push(violation(call, `took ${took.toFixed(0)} ms, at most ${allowed.toFixed(0)} were due`));
    }
    if (call.operation === "getOrSet" && isOfTheStore(call)) {
      violations.push(violation(call, `failed with ${call.failure?.code}: a failing store must not fail it`));
    }
  }
  return [...violations, ...notResumed(evidence)];
}

const isOfTheStore = ({ failure }: Call): boolean =>
  failure !== undefined && failure.load === undefined && failure.code !== "LOAD_TIMEOUT";

function allowedMs(evidence: Evidence, call: Call, loading: readonly Span[]): number {
  const lag = evidence.lag(call.worker, call.start, call.end);
  if (call.failure?.code === "CIRCUIT_OPEN" && call.operation !== "invalidatePattern")
    return AT_ONCE_MS + lag;
  const bound = OPERATION_TIMEOUT_MS + SLACK_MS + lag;
  // Each part of a scan has a deadline of its own.
  if (call.operation === "invalidatePattern") return bound + 2 * OPERATION_TIMEOUT_MS;
  if (call.operation !== "getOrSet") return bound;
  const waiting = waitedMs(loading, call);
  return bound + Math.min(waiting, call.hardTimeoutMs ?? Number.POSITIVE_INFINITY);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** When a process was loading each key, or seemed to be. */
function loadingTimes({ history }: Evidence): ReadonlyMap<string, readonly Span[]> {
  const troubles = grouped(history.troubles, ({ worker }) => worker);
  const spans = history.loads.map(({ key, worker, start, end }) => {
    const isStuck = troubles.get(worker)?.some(({ at }) => at >= start && at <= end + SLACK_MS) === true;
    return { key, start, end: isStuck ? end + LEASE_MS : end };
  });
  return grouped(spans, ({ key }) => key);
}

/** How much of a call overlaps these spans. */
function waitedMs(spans: readonly Span[], call: Call): number {
  let sum = 0;
  let reached = call.start;
  for (const { start, end } of spans) {
    if (end < reached) continue;
    if (start > call.end) break;
    sum += Math.max(0, Math.min(end, call.end) - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return sum;
}

/** Until when a process must have reached its store again: while it stands still, it cannot. */
function resumeBy(evidence: Evidence, worker: number, healed: number): number {
  let by = healed;
  for (let next = healed + RESUME_MS; next > by; next = healed + RESUME_MS + evidence.lag(worker, healed, by))
    by = next;
  return by;
}

/** Checked only if no other fault followed too soon, and if the run went on for long enough. */
function notResumed(evidence: Evidence): Violation[] {
  const { history, faults } = evidence;
  return faults.flatMap((fault, at) => {
    const { healed, what } = fault;
    const next = faults[at + 1]?.start ?? Number.POSITIVE_INFINITY;
    if (next < healed + RESUME_MS) return [];
    return Array.from({ length: history.workers }, (_, worker) => worker)
      .filter((worker) => evidence.hasProbes(worker))
      .filter((worker) => {
        const by = resumeBy(evidence, worker, healed);
        return evidence.resumedAt(worker, healed) > by && evidence.lastProbe(worker) > by;
      })
      .map((worker) => ({
        guarantee: 6 as const,
        message: `process ${worker} had not reached all of the store ${RESUME_MS} ms after the ${what} healed at ${healed.toFixed(1)}`,
        from: fault.start,
        to: healed + RESUME_MS,
      }));
  });
}

function violation(call: Call, what: string): Violation {
  const message = `${call.operation} ${call.id} in process ${call.worker}, begun at ${call.start.toFixed(1)}, ${what}`;
  return { guarantee: 6, message, key: call.keys?.[0], from: call.start - 100, to: call.end };
}
