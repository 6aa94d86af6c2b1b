// Guarantees 2, 3 and the end of 6: once an invalidation is in effect for a process, no invalidated value is served there.
import { type Evidence, isConcerned, NOTICE_MS, type Source, type Violation } from "./evidence.ts";
import type { Call, Value } from "./history.ts";

export function staleReads(evidence: Evidence): Violation[] {
  return evidence.history.calls.flatMap((read) =>
    read.operation === "set" ? [] : (read.values ?? []).flatMap((value) => judge(evidence, read, value)),
  );
}

function judge(evidence: Evidence, read: Call, value: Value): Violation[] {
  const source = evidence.sources.get(value.id);
  if (source === undefined || source.key !== value.key || !read.keys?.includes(value.key)) {
    return [violation(3, read, read.start, `was given what is not of its key: ${JSON.stringify(value)}`)];
  }
  if (source.load?.outcome === "skip" && !isHandedOut(source, read)) {
    return [violation(2, read, source.load.start, `was given ${source.id}, which was not to be stored`)];
  }
  const overlooked = evidence.changes.find((change) => isOverlooked(evidence, read, source, change));
  if (overlooked === undefined) return [];
  const since = source.load?.at ?? source.set?.start ?? 0;
  return [violation(guaranteeOf(overlooked, source, read), read, since, words(overlooked, source))];
}

/** Whether a value that was not stored came from a load that this call waited for. */
const isHandedOut = ({ worker, load }: Source, read: Call): boolean =>
  read.operation === "getOrSet" && read.worker === worker && load !== undefined && read.start <= load.end;

/** Whether a read returned a value older than a change that is in effect for it. */
function isOverlooked(evidence: Evidence, read: Call, source: Source, change: Call): boolean {
  if (change.start > read.start || change.id === source.id) return false;
  if (!isConcerned(change, source) || !isOlder(evidence, source, change, read.worker)) return false;
  if (change.worker === read.worker) return change.end < read.start;
  if (change.failure !== undefined) {
    return (
      evidence.settledBy(change, source.key) + NOTICE_MS < read.start && !evidence.isLost(change, read.start)
    );
  }
  const lag = evidence.lag(read.worker, change.end, read.start);
  return change.end + NOTICE_MS + lag < read.start && !evidence.isLost(change, read.start);
}

/**
 * Either of two concurrent writes may be the later one. For other processes, a write with an unknown outcome is in
 * progress until its process has compensated for it.
 */
function isOlder(
  evidence: Evidence,
  { load, set, worker, key }: Source,
  change: Call,
  reader: number,
): boolean {
  if (load !== undefined) return load.at < change.start;
  if (set === undefined) return false;
  return (worker === reader ? set.end : evidence.settledBy(set, key)) < change.start;
}

function guaranteeOf(change: Call, { load }: Source, read: Call): Violation["guarantee"] {
  if (change.failure !== undefined && change.worker === read.worker) return 6;
  return load !== undefined && load.end >= change.start ? 2 : 3;
}

function words(change: Call, source: Source): string {
  const outcome = change.failure === undefined ? "acknowledged" : `ended with ${change.failure.code}`;
  return (
    `was given ${source.id} of process ${source.worker}, older than ${change.operation} ${change.id} of process ` +
    `${change.worker}, which was ${outcome} at ${change.end.toFixed(1)}`
  );
}

function violation(guarantee: Violation["guarantee"], read: Call, since: number, what: string): Violation {
  const [key] = read.values?.map((value) => value.key) ?? [];
  const message = `${read.operation} ${read.id} in process ${read.worker}, begun at ${read.start.toFixed(1)}, ${what}`;
  return { guarantee, message, key, from: since, to: read.end };
}
