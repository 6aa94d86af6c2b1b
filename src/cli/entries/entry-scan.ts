// Scans the entries a command applies to, and reports a missing one.
import type { EntryInfo } from "../../cache/entry-pages.ts";
import { CommandError, EXIT } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";
import type { Session } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";

export interface EntryFilter {
  readonly pattern?: string;
  /** Entries with at least one of these tags; undefined: all entries. */
  readonly tags?: readonly string[];
}

/** Batches as the store returns them, possibly empty; ends once `stop` aborts. A key may appear twice. */
export async function* scanEntries(
  { cache }: Session,
  { pattern, tags = [] }: EntryFilter,
  stop: AbortSignal,
): AsyncIterable<readonly EntryInfo[]> {
  const batches = cache
    .scan({ state: "fresh", tags, signal: stop, ...(pattern !== undefined && { match: pattern }) })
    [Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await unlessStopped(batches.next(), stop);
      if (next === undefined || next.done) return;
      yield next.value.entries;
    }
  } finally {
    // An aborted scan ends by itself once the store has answered.
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

/** An entry in JSON; null: it never expires, or the store does not know its age. */
export interface EntryRow {
  readonly key: string;
  readonly ttl_seconds: number | null;
  readonly size_bytes: number;
  readonly age_seconds: number | null;
  readonly tags: readonly string[];
}

const toMilliseconds = (seconds: number): number => Math.round(seconds * 1_000) / 1_000;

export function entryRow({ key, ttl, bytes, age, tags }: EntryInfo): EntryRow {
  return {
    key,
    ttl_seconds: Number.isFinite(ttl) ? toMilliseconds(ttl) : null,
    size_bytes: bytes,
    age_seconds: age === undefined ? null : toMilliseconds(age),
    tags,
  };
}

export function missingEntry(key: string): CommandError {
  return new CommandError(
    `no entry under "${escapeControls(key)}"`,
    "It may have expired or been invalidated. `xcache search` finds similar keys; --prefix and --namespace select another part of the store.",
    EXIT.failed,
  );
}
