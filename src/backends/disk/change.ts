// What an operation changes: puts and removals that are made together or, where a condition no longer holds, not at all.
import type { DiskKey } from "./layout/disk-key.ts";
import { rowsOf, rowValue } from "./layout/index-row.ts";
import { comparable, type Encoded, type Facts } from "./layout/stored-record.ts";
import type { LmdbStore } from "./lmdb.ts";

/** Under which a record is still as it was when the change was decided. */
export interface Condition {
  readonly key: DiskKey;
  /** `null`: there is none. */
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

/** Puts a record in the place of what was there. */
export function putRecord(
  key: DiskKey,
  next: Encoded,
  before: Facts | undefined,
  condition?: Condition,
): Change {
  const rows = rowsOf(next);
  const value = rowValue(key);
  const version = comparable(next.version);
  return {
    ...(condition === undefined ? {} : { condition }),
    puts: [{ key, value: next.bytes, version }, ...rows.map((row) => ({ key: row, value, version }))],
    removals:
      before === undefined ? [] : rowsOf(before).filter((row) => !rows.some((kept) => kept.equals(row))),
  };
}

/** Removes a record if it is still this one. */
export function removeRecord(key: DiskKey, present: Facts): Change {
  return {
    condition: { key, version: comparable(present.version) },
    puts: [],
    removals: [key, ...rowsOf(present)],
  };
}

/** Hands a change to LMDB, inside a batch; says whether its condition held, once that is committed. */
export function issue(store: LmdbStore, change: Change): Promise<boolean> | undefined {
  const { condition } = change;
  const make = (): void => {
    for (const { key, value, version } of change.puts) store.put(key, value, version).catch(() => {});
    for (const key of change.removals) store.remove(key).catch(() => {});
  };
  if (condition !== undefined) return store.ifVersion(condition.key, condition.version, make);
  make();
  return undefined;
}

/** Bytes that a change adds, about. */
export const sizeOf = ({ puts }: Change): number =>
  puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0);

/** Whether a change can be seen in the store: what it puts has a random version in it. */
export function isMade({ puts, removals }: Change, get: (key: DiskKey) => Buffer | undefined): boolean {
  if (puts.length > 0) return puts.some(({ key, value }) => get(key)?.equals(value) === true);
  return removals.every((key) => get(key) === undefined);
}
