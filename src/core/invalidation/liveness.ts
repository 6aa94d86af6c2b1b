// The entry of a record, and whether it has expired. Whether its stamps are current: see namespace-stamps.ts.
import type { Entry, StoreRecord } from "../record.ts";
import type { OutboxBackend } from "./outbox-backend.ts";

/** The entry in a record: the record itself, or the one behind a lease. */
export function entryOf(record: StoreRecord | undefined, key: string): Entry | undefined {
  const entry = record?.kind === "lease" ? record.behind : record;
  return entry?.kind === "entry" && entry.key === key ? entry : undefined;
}

/** How long ago an entry expired, in milliseconds; 0 while fresh. Early by the clock's error, never late. */
export function expiredForMs(entry: Entry, backend: OutboxBackend): number {
  if (entry.expires === Number.POSITIVE_INFINITY) return 0;
  const leftMs = backend.ownExpiries.leftMs(entry.version) ?? entry.expires - latest(backend);
  return Math.max(0, -leftMs);
}

/** A time that the store's clock has not passed. */
const latest = (backend: OutboxBackend): number => backend.now() + backend.clockErrorMs();

/** By the store's time. That the store still has it proves nothing: its own expiry counts from when the entry arrived. */
export function isFresh(entry: Entry, backend: OutboxBackend): boolean {
  if (entry.expires === Number.POSITIVE_INFINITY) return true;
  const leftMs = backend.ownExpiries.leftMs(entry.version);
  return leftMs === undefined ? !backend.mayHaveReached(entry.expires) : leftMs > 0;
}

/** How long the store keeps a record, from now. */
export function lifetimeMs(record: StoreRecord, now: number): number {
  if (record.kind === "entry") return record.staleUntil - now;
  if (record.kind === "stamp") return record.expires - now;
  return Math.max(record.expires, record.behind?.staleUntil ?? 0) - now;
}
