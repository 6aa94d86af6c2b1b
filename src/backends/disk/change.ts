// A change to the store: puts and removals that are applied together, or not at all if a condition no longer holds.
import type { Row } from "./environment.ts";
import { AREA, type DiskKey } from "./layout/disk-key.ts";
import { isRowOf, rowsOf, rowValue } from "./layout/index-row.ts";
import {
  comparable,
  type Encoded,
  metaIn,
  type RecordMeta,
  storedKey,
  withOwnRows,
} from "./layout/stored-record.ts";
import type { LmdbStore } from "./lmdb.ts";

/** Holds while the record is still the one that the change is based on. */
export interface Condition {
  readonly key: DiskKey;
  /** `null`: there is no record. */
  readonly version: number | null;
}

interface Put {
  readonly key: DiskKey;
  readonly value: Buffer;
  readonly version: number;
}

export interface Change {
  readonly condition?: Condition;
  readonly puts: readonly Put[];
  readonly removals: readonly DiskKey[];
}

const NO_KEYS: readonly DiskKey[] = [];

/** Stores a record in place of the one before. A condition is needed for a record that keeps the rows of that one. */
export function putRecord(
  key: DiskKey,
  next: Encoded,
  before: RecordMeta | undefined,
  condition?: Condition,
): Change {
  const version = comparable(next.version);
  const puts: Put[] = [{ key, value: next.bytes, version }];
  if (before !== undefined && next.rows === before.rows) return { puts, removals: NO_KEYS };
  const rows = rowsOf(next);
  const value = rowValue(key);
  for (const row of rows) puts.push({ key: row, value, version });
  const removals = before === undefined ? [] : formerRows(before, next, rows);
  return condition === undefined ? { puts, removals } : { condition, puts, removals };
}

/** The rows of the record before that are not rows of the next one as well. */
function formerRows(before: RecordMeta, next: RecordMeta, rows: readonly Buffer[]): readonly Buffer[] {
  const former = rowsOf(before);
  // A row holds the version: only the same record written again may share one.
  if (before.rows.version !== next.rows.version) return former;
  return former.filter((row) => !rows.some((kept) => kept.equals(row)));
}

/** Removes a record if it has not changed. */
export function removeRecord(key: DiskKey, present: RecordMeta): Change {
  return {
    condition: { key, version: comparable(present.version) },
    puts: [],
    removals: [key, ...rowsOf(present)],
  };
}

/** Gives a record its own rows in place of those of an earlier record, if it has not changed. */
function moveRows(key: DiskKey, bytes: Buffer, meta: RecordMeta): Change {
  return putRecord(key, withOwnRows(bytes, meta), meta, { key, version: comparable(meta.version) });
}

/** Queues a change in the current LMDB batch; resolves to whether its condition held, once it is committed. */
export function issue(store: LmdbStore, change: Change): Promise<boolean> | undefined {
  const { condition } = change;
  if (condition !== undefined)
    return store.ifVersion(condition.key, condition.version, () => make(store, change));
  make(store, change);
  return undefined;
}

/** As `issue`, without the condition. Within a batch the binding gives every unconditional change the same promise. */
export function make(store: LmdbStore, { puts, removals }: Change): void {
  for (const { key, value, version } of puts) handled(store.put(key, value, version));
  for (const key of removals) handled(store.remove(key));
}

let lastHandled: Promise<boolean> | undefined;

/** A failed commit rejects the promise of the batch, where it is reported. */
function handled(promise: Promise<boolean>): void {
  if (promise === lastHandled) return;
  lastHandled = promise;
  promise.catch(() => {});
}

/** Approximate bytes that a change adds. */
export const sizeOf = ({ puts }: Change): number =>
  puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0);

/** Whether a change is visible in the store; what it puts contains a random version. */
export function isMade({ puts, removals }: Change, get: (key: DiskKey) => Buffer | undefined): boolean {
  if (puts.length > 0) return puts.some(({ key, value }) => get(key)?.equals(value) === true);
  return removals.every((key) => get(key) === undefined);
}

export interface RowRemoval {
  readonly change: Change;
  /** The key of the record that it changes. */
  readonly key?: string;
  /** The record that the row belongs to; undefined if only the row is removed. */
  readonly meta?: RecordMeta;
  /** Whether the record stays, with rows of its own. */
  readonly isMove?: boolean;
}

/**
 * Removes what an index row points to: its record, or only the row if another record has replaced that one. `bytes` is
 * the value at the disk key that the row names. A record with the rows of an earlier one that `stays` gets its own.
 */
export function removalFor(
  { key: row, value: diskKey }: Row,
  bytes: Buffer | undefined,
  stays: (meta: RecordMeta) => boolean,
): RowRemoval {
  const meta = metaIn(bytes);
  if (bytes !== undefined && meta !== undefined) {
    if (!isRowOf(row, meta)) return { change: { puts: [], removals: [row] } };
    const key = storedKey(diskKey, bytes);
    return meta.rows.version !== meta.version && stays(meta)
      ? { change: moveRows(diskKey, bytes, meta), key, meta, isMove: true }
      : { change: removeRecord(diskKey, meta), key, meta };
  }
  // A damaged record is removed too, except under a hash: its key is unknown, so it may be in the middle of a write.
  return bytes === undefined || diskKey[0] === AREA.hashed
    ? { change: { puts: [], removals: [row] } }
    : { change: { puts: [], removals: [row, diskKey] }, key: storedKey(diskKey, bytes) };
}
