// Index rows, committed with their records: by expiry for the sweep, by write time for eviction.
//
// The key of a row is its area, a time and the random version of the record; its value is the disk key of the record. A
// record that is overwritten may keep its rows: they then come too early, and are moved when they are reached. When two
// processes write a record at the same time, a stale row may remain; readers remove a row that does not match its record.
import { TIME_LENGTH, TOKEN_LENGTH } from "../../../core/frame/frame-fields.ts";
import { writeTime, writeToken } from "../../../core/frame/frame-writer.ts";
import { AREA, type DiskKey, inArea, keyEncoder, rangeOf } from "./disk-key.ts";
import { NEVER, type RecordMeta } from "./stored-record.ts";

const LOWEST_VERSION = "\0".repeat(TOKEN_LENGTH);
const NOTHING = Buffer.alloc(0);

/** Every row of one record; without an expiry row if it never expires. */
export function rowsOf({ evictedLast, rows }: RecordMeta): readonly Buffer[] {
  const { expiresAt, writtenAt, version } = rows;
  const age = ageRow(writtenAt, evictedLast, version);
  return expiresAt === NEVER ? [age] : [age, expiryRow(expiresAt, version)];
}

function expiryRow(expiresAt: number, version: string): Buffer {
  const row = Buffer.allocUnsafe(1 + TIME_LENGTH + TOKEN_LENGTH);
  row[0] = AREA.expiry;
  writeToken(row, writeTime(row, 1, expiresAt), version);
  return row;
}

function ageRow(writtenAt: number, evictedLast: boolean, version: string): Buffer {
  const row = Buffer.allocUnsafe(2 + TIME_LENGTH + TOKEN_LENGTH);
  row[0] = AREA.age;
  row[1] = evictedLast ? 1 : 0;
  writeToken(row, writeTime(row, 2, writtenAt), version);
  return row;
}

/** The rows of all records that have expired by `now`. */
export function expiredBy(now: number): { readonly start: Buffer; readonly end: Buffer } {
  const start = inArea(AREA.expiry, NOTHING);
  return { start, end: expiryRow(Math.min(NEVER, Math.floor(now) + 1), LOWEST_VERSION) };
}

/** The rows of records written before a time: of entries, or of those evicted last. */
export function writtenBefore(
  time: number,
  evictedLast: boolean,
): { readonly start: Buffer; readonly end: Buffer } {
  const start = inArea(AREA.age, Buffer.from([evictedLast ? 1 : 0]));
  return { start, end: ageRow(Math.max(0, Math.floor(time)), evictedLast, LOWEST_VERSION) };
}

/** The rows of all records, in eviction order. */
export const byAge = (): { readonly start: Buffer; readonly end: Buffer } => rangeOf(AREA.age, NOTHING);

/** The disk key of a record as the value of its rows. */
export function rowValue(key: DiskKey): Buffer {
  if (typeof key !== "string") return key;
  const value = Buffer.allocUnsafe(1 + Buffer.byteLength(key));
  keyEncoder.writeKey(key, value, 0);
  return value;
}

/** Whether a row belongs to the record that is stored now. */
export const isRowOf = (row: Buffer, meta: RecordMeta): boolean =>
  rowsOf(meta).some((own) => own.equals(row));
