// Holds a history to the guarantees of getOrSet: each rule is a function that returns the violations it finds.
import { BackendError } from "../../src/core/errors.ts";
import { LoadError } from "./calls.ts";
import type { Check } from "./checks.ts";
import type { Call, History, LeaseWrite, LoadRun, Moment, Source } from "./history.ts";
import { type Change, concerns, isChange } from "./operations.ts";
import { OPERATION_TIMEOUT_MS } from "./process.ts";
import { spelledKey } from "./store.ts";

export interface Violation {
  /** The number of the guarantee. */
  readonly guarantee: 1 | 2 | 3 | 4 | 5 | 6;
  readonly check: Check;
  readonly message: string;
}

/** By then another process's change has been noticed (guarantee 2). */
const NOTICE_MS = 1_000;
/** A caller joins a load of its own process only if that was known not to be overtaken so long ago. */
const JOIN_MS = 1_500;
/** A lease that was not renewed for so long may be taken over; less what a renewal may be late. */
const LEASE_MS = 4_500;
/** What is owed is delivered within this time of the store's return, and with several failures in a row by the second. */
export const OWED_MS = 1_000;
export const OWED_AT_LAST_MS = 15_000;
const ROUNDING_MS = 5;

interface ChangeCall extends Call {
  readonly operation: Change;
  readonly end: Moment;
}

export function check(history: History): Violation[] {
  return [
    ...staleReads(history),
    ...staleContexts(history),
    ...expiredReads(history),
    ...secondLoads(history),
    ...loadErrors(history),
    ...overlongCalls(history),
    ...openBreakers(history),
    ...history.observed,
  ];
}

/** Guarantees 2 and 3. */
function staleReads(history: History): Violation[] {
  const changes = endedChanges(history);
  return history.calls.flatMap((call): Violation[] => {
    const { operation, value } = call;
    if (value === undefined || (operation.do !== "get" && operation.do !== "getOrSet")) return [];
    const source = history.source(value);
    const name = `${operation.do} ${call.id} in p${call.process}`;
    if (source === undefined || source.key !== operation.key || source.namespace !== operation.namespace)
      return [{ guarantee: 2, check: "foreign value", message: `${name} returned ${value}` }];
    return invalidating(history, changes, source, call, call.start, call.heard).map((change) => {
      const inFlight = source.load?.end === undefined || source.load.end.tick > change.start.tick;
      const guarantee = source.load !== undefined && inFlight ? 2 : 3;
      const message = `${name} returned ${value} although ${describe(change)} had ended before the call began`;
      return { guarantee, check: kindOf(history, change, source, call), message };
    });
  });
}

/** Part of guarantee 2: what a load gets as the stale value. */
function staleContexts(history: History): Violation[] {
  const changes = endedChanges(history);
  return history.loads.flatMap((run): Violation[] => {
    const source = run.stale === undefined ? undefined : history.source(run.stale);
    if (source === undefined) return [];
    const admitted = admissionOf(history, run);
    // A change of another process that comes later revokes the lease, and the result is not stored.
    const isEarlier = ({ process, end }: ChangeCall) => process === run.process || end.tick < admitted.tick;
    const earlier = changes.filter(isEarlier);
    return invalidating(history, earlier, source, run, run.start, run.heard).map((change) => ({
      guarantee: 2,
      check: "invalidated context.stale",
      message: `load ${run.id} in p${run.process} got ${run.stale} as context.stale although ${describe(change)} had ended before it began`,
    }));
  });
}

/** When the store gave a load its lease. */
function admissionOf({ leaseWrites }: History, { process, namespace, key, start }: LoadRun): Moment {
  const name = spelledKey(namespace, key);
  const isMeant = (each: LeaseWrite) =>
    each.process === process && each.spelled === name && each.at.tick < start.tick;
  return leaseWrites.findLast(isMeant)?.at ?? start;
}

/** An expired entry is never returned by get; the store's clock must not have jumped. */
function expiredReads(history: History): Violation[] {
  if (history.faults.some(({ what }) => what === "step clock")) return [];
  return history.calls.flatMap(({ id, operation, value, start, process }): Violation[] => {
    if (operation.do !== "get" || value === undefined) return [];
    const source = history.source(value);
    const by = source?.set ?? source?.load?.call;
    const stored = source?.set?.end ?? source?.load?.end;
    if (by === undefined || stored === undefined || !("ttl" in by.operation)) return [];
    // A load is stored some time after it has ended: at the latest when its call ends, or its store times out.
    const latest = Math.max(stored.time + 2 * OPERATION_TIMEOUT_MS, by.end?.time ?? 0);
    if (start.time <= latest + (by.operation.ttl as number) * 1_000) return [];
    const message = `get ${id} in p${process} returned ${value}, which had expired`;
    return [{ guarantee: 3, check: "expired read", message }];
  });
}

/** What invalidated a value, of which a reader must have known. */
function invalidating(
  history: History,
  changes: readonly ChangeCall[],
  source: Source,
  reader: { readonly process: number; readonly operation?: Call["operation"] },
  start: Moment,
  heard: number,
): ChangeCall[] {
  const { determined, load } = source;
  if (determined === undefined) return [];
  // A set that failed may take effect until its process is connected again and has undone it.
  const undoneBy = Math.max(history.healed?.time ?? Number.POSITIVE_INFINITY, source.set?.end?.time ?? 0);
  if (source.set?.error !== undefined && start.time < undoneBy + OWED_MS) return [];
  const isJoined =
    (load !== undefined && load.process === reader.process && mayRun(load, start)) ||
    mayJoin(history, reader, start);
  return changes.filter((change) => {
    if (change.start.tick <= determined.tick || change.end.tick >= start.tick) return false;
    if (!concerns(change.operation, source)) return false;
    // The issuer knows of its change whatever the store said; a change that failed is delivered later.
    if (change.process === reader.process) return true;
    const since = effective(history, change);
    if (since === undefined || since.tick >= start.tick) return false;
    const age = start.time - since.time;
    // What is owed may be delivered later than this.
    if (age < 0) return false;
    return isJoined ? age > JOIN_MS : age > NOTICE_MS || since.sequence <= heard;
  });
}

/** Whether another caller of its process was just looking for the same entry: what that one finds is for both. */
function mayJoin(
  { calls }: History,
  { process, operation }: { readonly process: number; readonly operation?: Call["operation"] },
  at: Moment,
): boolean {
  if (operation?.do !== "getOrSet") return false;
  return calls.some(
    (call) =>
      call.process === process &&
      call.operation.do === "getOrSet" &&
      call.operation.key === operation.key &&
      call.operation.namespace === operation.namespace &&
      call.start.tick < at.tick &&
      (call.end === undefined || call.end.tick > at.tick),
  );
}

/** Whether a load, or storing its result, may have been in progress. */
function mayRun({ id, end, call }: LoadRun, at: Moment): boolean {
  if (end === undefined || end.tick > at.tick) return true;
  if (call.end === undefined || call.end.tick > at.tick) return true;
  // A call that has timed out, or got a stale value, leaves its load behind.
  return call.value !== id && at.time <= end.time + 2 * OPERATION_TIMEOUT_MS;
}

/** From when on other processes must know of a change; undefined: never. */
function effective(history: History, change: ChangeCall): Moment | undefined {
  if (change.error !== undefined) return owedBy(history, change);
  // A replica without it may have taken over: then its issuer repeats it as soon as it is connected again.
  const failover = history.faults.findLast(({ loses, at }) => loses === true && at.tick > change.start.tick);
  if (failover === undefined) return change.end;
  const repeated = history.calls.find(
    ({ process, start, end, error, operation }) =>
      process === change.process &&
      start.tick > failover.at.tick &&
      end !== undefined &&
      error === undefined &&
      isChange(operation),
  );
  return repeated?.end;
}

/** When a change whose outcome was not known has been delivered. */
function owedBy(history: History, { process, error, end }: ChangeCall): Moment | undefined {
  const { healed } = history;
  if (healed === undefined || !(error instanceof BackendError) || isDisconnected(error)) return undefined;
  const isGone = history.faults.some((fault) => fault.what === "kill" && fault.process === process);
  if (isGone) return undefined;
  const left = history.calls.find((call) => call.process === process && call.operation.do === "disconnect");
  if (left !== undefined) return owedAtDisconnect(history, left);
  const from = Math.max(healed.time, end.time) + OWED_MS;
  return { tick: healed.tick, time: from, sequence: Number.POSITIVE_INFINITY };
}

/** disconnect() delivers what is owed if the store answers. */
function owedAtDisconnect({ faults }: History, { start, end, isReachable }: Call): Moment | undefined {
  if (end === undefined || isReachable !== true) return undefined;
  const isDisturbed = faults.some(({ at }) => at.tick > start.tick && at.tick < end.tick);
  return isDisturbed || end.time - start.time >= OPERATION_TIMEOUT_MS / 2 ? undefined : end;
}

function kindOf(history: History, change: ChangeCall, source: Source, reader: Call): Check {
  if (source.set?.error !== undefined) return "late set";
  // With one failover the run id tells; after two, the same server may be back without the change.
  const failovers = history.faults.filter(({ loses, at }) => loses === true && at.tick > change.start.tick);
  if (failovers.length > 1) return "lost in a failover";
  if (change.error !== undefined && change.process !== reader.process) {
    const { healed, calls } = history;
    if (calls.some(({ process, operation }) => process === change.process && operation.do === "disconnect"))
      return "owed at disconnect";
    const isLong =
      healed !== undefined && reader.start.time > Math.max(healed.time, change.end.time) + OWED_AT_LAST_MS;
    return isLong ? "owed" : "owed for a second";
  }
  return "stale read";
}

/** Guarantees 1 and 5. */
function secondLoads(history: History): Violation[] {
  const changes = endedChanges(history);
  const troubled = history.faults[0]?.at.tick ?? Number.POSITIVE_INFINITY;
  const violations: Violation[] = [];
  for (const [at, second] of history.loads.entries()) {
    if (second.start.tick > troubled) break;
    const first = history.loads
      .slice(0, at)
      .findLast(({ key, namespace }) => key === second.key && namespace === second.namespace);
    if (first === undefined || !excludes(first, second)) continue;
    // A disconnected cache loads without the store.
    if ([first, second].some(({ process }) => hasLeft(history, process, second.start))) continue;
    if (changes.some((change) => mayVoid(change, first, second))) continue;
    // The one that begins second may have got its lease first, and lost it before it began.
    const isSecondAdmitted = admissionOf(history, second).tick < first.start.tick;
    if (isSecondAdmitted && changes.some((change) => mayVoid(change, second, first))) continue;
    if ([first, second].some((load) => hasWaitedInVain(history, load))) continue;
    if (openChanges(history).some((change) => change.start.tick < second.start.tick)) continue;
    const guarantee = first.call.error !== undefined ? 5 : 1;
    const message = `load ${second.id} in p${second.process} began although ${first.id} in p${first.process} ${first.end === undefined || first.end.tick > second.start.tick ? "was running" : "had been stored"}`;
    violations.push({ guarantee, check: "second load", message });
  }
  return violations;
}

const hasLeft = ({ calls }: History, process: number, at: Moment): boolean =>
  calls.some(
    (call) => call.process === process && call.operation.do === "disconnect" && call.start.tick < at.tick,
  );

/** Whether the caller had waited for a load of another process that ended without a value: then it loads without a lease. */
const hasWaitedInVain = ({ loads }: History, { key, namespace, process, call, start }: LoadRun): boolean =>
  loads.some(
    (load) =>
      load.key === key &&
      load.namespace === namespace &&
      load.process !== process &&
      load.end !== undefined &&
      load.outcome !== "value" &&
      load.end.tick > call.start.tick &&
      load.end.tick < start.tick,
  );

/** Whether a load rules out a later one, if nothing was invalidated. */
function excludes(first: LoadRun, second: LoadRun): boolean {
  const { operation } = first.call;
  if (operation.do !== "getOrSet") return false;
  if (first.end === undefined || first.end.tick > second.start.tick)
    return second.start.time - first.start.time < LEASE_MS;
  if (first.outcome !== "value") return false;
  const ttlMs = (operation.ttl ?? 300) * 1_000;
  return second.start.time < first.start.time + ttlMs - NOTICE_MS;
}

/** Whether a change may be why the first load was not stored or not waited for. */
function mayVoid(change: ChangeCall, first: LoadRun, second: LoadRun): boolean {
  if (change.start.tick > second.start.tick) return false;
  if (change.end.time < first.call.start.time - JOIN_MS) return false;
  // Tags named late are compared by their groups, of which any other tag may be a member.
  if (change.operation.do === "invalidateTags" && first.tags.includes("late")) return true;
  return concerns(change.operation, first);
}

/** Guarantee 4. */
function loadErrors(history: History): Violation[] {
  const troubled = history.faults[0]?.at.tick ?? Number.POSITIVE_INFINITY;
  const violations: Violation[] = [];
  for (const failed of history.loads) {
    const { end, error, process } = failed;
    if (end === undefined || error === undefined || end.tick > troubled) continue;
    const isVoid = history.calls.some(
      (call) =>
        isChange(call.operation) &&
        concerns(call.operation, failed) &&
        call.start.tick < end.tick &&
        (call.end === undefined || call.end.time > failed.call.start.time - JOIN_MS),
    );
    if (isVoid) continue;
    const again = history.loads.find(
      (run) =>
        run.process === process &&
        run.key === failed.key &&
        run.namespace === failed.namespace &&
        // A caller that may get a stale value reads the store before it waits.
        !("staleWhileRevalidate" in run.call.operation) &&
        run.start.tick > end.tick &&
        run.call.start.tick < end.tick &&
        run.call.start.tick > failed.start.tick,
    );
    if (again === undefined) continue;
    const message = `${again.call.id} waited for load ${failed.id}, which failed, and loaded again (${again.id})`;
    violations.push({ guarantee: 4, check: "load error", message });
  }
  for (const { id, error, start, process } of history.calls) {
    if (!(error instanceof LoadError)) continue;
    const run = history.loads.find((each) => each.id === error.message);
    if (run?.process === process && run.end !== undefined && run.end.tick > start.tick) continue;
    violations.push({
      guarantee: 4,
      check: "load error",
      message: `${id} got the error of load ${error.message}`,
    });
  }
  return violations;
}

/** Guarantee 6: deadlines of calls. */
function overlongCalls(history: History): Violation[] {
  return history.calls.flatMap((call): Violation[] => {
    const limit = limitOf(call);
    const end = call.end ?? (history.end as Moment);
    const took = end.time - call.start.time - call.frozenMs;
    // A process that was frozen gets as long again, to process the answers that have arrived meanwhile.
    const again = Math.min(call.frozenMs, OPERATION_TIMEOUT_MS);
    if (took <= limit + again + ROUNDING_MS || call.frozenMs === Number.POSITIVE_INFINITY) return [];
    const message = `${call.operation.do} ${call.id} in p${call.process} took ${Math.round(took)} ms, at most ${limit} were allowed`;
    return [{ guarantee: 6, check: "overlong call", message }];
  });
}

/** Guarantee 6: a store that is connected again is used again. */
function openBreakers({ calls }: History): Violation[] {
  return calls.flatMap(({ id, process, error, isUp }): Violation[] => {
    if (!isUp || (error as { code?: string } | undefined)?.code !== "CIRCUIT_OPEN") return [];
    const message = `${id} in p${process} was refused by the circuit breaker although the store was connected again`;
    return [{ guarantee: 6, check: "breaker stays open", message }];
  });
}

function limitOf({ operation }: Call): number {
  if (operation.do === "invalidatePattern") return 6 * OPERATION_TIMEOUT_MS;
  if (operation.do !== "getOrSet") return OPERATION_TIMEOUT_MS;
  // A read of the store before the load, and one of the stale value after it.
  return operation.hardTimeout === undefined
    ? Number.POSITIVE_INFINITY
    : operation.hardTimeout * 1_000 + 2 * OPERATION_TIMEOUT_MS;
}

const isDisconnected = (error: Error): boolean => (error as { code?: string }).code === "DISCONNECTED";

/** Changes that have ended and may have had an effect. */
function endedChanges({ calls }: History): ChangeCall[] {
  return calls.filter(
    (call): call is ChangeCall =>
      isChange(call.operation) &&
      call.end !== undefined &&
      (call.error === undefined || (call.error instanceof BackendError && !isDisconnected(call.error))),
  );
}

const openChanges = ({ calls }: History): Call[] =>
  calls.filter((call) => isChange(call.operation) && call.end === undefined);

const describe = (change: ChangeCall): string =>
  `${change.operation.do} ${change.id} in p${change.process}${change.error === undefined ? "" : " (which failed)"}`;
