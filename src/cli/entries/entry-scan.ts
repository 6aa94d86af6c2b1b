// Looks through the entries of the cache that a command is about, as they come.
import { glob } from "../../core/glob/glob.ts";
import type { Inspection } from "../../core/namespace.ts";
import { unlessStopped } from "../interrupt.ts";
import type { Session } from "../session.ts";

export interface EntryFilter {
  readonly pattern?: string;
  /** Entries that carry any of these; all of them where it is not said. */
  readonly tags?: readonly string[];
}

/** Throws InvalidKeyError for a pattern that is none. */
function entryMatcher({ pattern, tags }: EntryFilter): (entry: Inspection) => boolean {
  const matches = glob(pattern ?? "*");
  const wanted = new Set(tags);
  return (entry) => matches(entry.key) && (wanted.size === 0 || entry.tags.some((tag) => wanted.has(tag)));
}

/** Batches as the store gives them, some of them empty; ends as soon as `stop` aborts. A key may come twice. */
export async function* scanEntries(
  { space }: Session,
  filter: EntryFilter,
  stop: AbortSignal,
): AsyncIterable<readonly Inspection[]> {
  const matches = entryMatcher(filter);
  const batches = space.scan(stop)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await unlessStopped(batches.next(), stop);
      if (next === undefined || next.done) return;
      yield next.value.filter(matches);
    }
  } finally {
    // A scan that was told to stop ends by itself, once the store has answered.
    if (!stop.aborted) await batches.return?.();
  }
}

export async function countEntries(
  session: Session,
  filter: EntryFilter,
  stop: AbortSignal,
): Promise<number> {
  let count = 0;
  for await (const batch of scanEntries(session, filter, stop)) count += batch.length;
  return count;
}

/** An entry in JSON; null: it never ends, or the store does not say. */
export interface EntryRow {
  readonly key: string;
  readonly ttl_seconds: number | null;
  readonly size_bytes: number;
  readonly age_seconds: number | null;
  readonly tags: readonly string[];
}

const seconds = (ms: number): number => Math.round(ms) / 1_000;

export function entryRow({ key, ttlMs, bytes, ageMs, tags }: Inspection): EntryRow {
  return {
    key,
    ttl_seconds: Number.isFinite(ttlMs) ? seconds(ttlMs) : null,
    size_bytes: bytes,
    age_seconds: ageMs === undefined ? null : seconds(ageMs),
    tags,
  };
}
