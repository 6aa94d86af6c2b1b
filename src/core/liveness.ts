// What a record stands for, and whether its time has come. Whether its stamps are present: see seals.ts.
import type { Backend } from "./backend.ts";
import type { Entry, StoreRecord } from "./record.ts";

/** The entry a record stands for: itself, or what a lease keeps behind it. */
export function entryOf(record: StoreRecord | undefined, key: string): Entry | undefined {
  const entry = record?.kind === "lease" ? record.behind : record;
  return entry?.kind === "entry" && entry.key === key ? entry : undefined;
}

/** How long ago an entry expired, in milliseconds; 0 while fresh. Early by the clock's error, never late. */
export function expiredForMs(entry: Entry, backend: Backend): number {
  if (entry.expires === Number.POSITIVE_INFINITY) return 0;
  return Math.max(0, backend.now() + backend.clockErrorMs() - entry.expires);
}

/** `record` is what the entry was found in. */
export function isFresh(entry: Entry, record: StoreRecord | undefined, backend: Backend): boolean {
  if (entry.expires === Number.POSITIVE_INFINITY) return true;
  // Without a stale window the store itself drops it in time: its presence is the proof, unless a lease keeps it.
  if (entry === record && entry.expires === entry.staleUntil) return true;
  return backend.now() + backend.clockErrorMs() < entry.expires;
}

/** How long the store keeps a record, from now. */
export function lifetimeMs(record: StoreRecord, now: number): number {
  if (record.kind === "entry") return record.staleUntil - now;
  if (record.kind === "stamp") return record.expires - now;
  return Math.max(record.expires, record.behind?.staleUntil ?? 0) - now;
}
