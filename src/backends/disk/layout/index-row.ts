// Rows next to the records, in the same commits: when each ends, for the sweep, and when it was written, for making room.
//
// A row's key is its area, a time and the record's version, which is random; its value is the key of the record. One
// process may leave a row behind that another has overtaken: whoever finds that it does not fit its record removes it.
import { AREA, type DiskKey, inArea, keyEncoder, rangeOf } from "./disk-key.ts";
import { type Facts, NEVER } from "./stored-record.ts";

const TIME_BYTES = 6;
const VERSION_BYTES = 8;
const NOTHING = Buffer.alloc(0);

/** Every row of one record: none where it ends for one that never does. */
export function rowsOf({ ends, written, leavesLast, version }: Facts): readonly Buffer[] {
  const age = ageRow(written, leavesLast, version);
  return ends === NEVER ? [age] : [age, expiryRow(ends, version)];
}

function expiryRow(ends: number, version: string): Buffer {
  const row = Buffer.allocUnsafe(1 + TIME_BYTES + VERSION_BYTES);
  row[0] = AREA.expiry;
  row.writeUIntBE(ends, 1, TIME_BYTES);
  row.write(version, 1 + TIME_BYTES, "latin1");
  return row;
}

function ageRow(written: number, leavesLast: boolean, version: string): Buffer {
  const row = Buffer.allocUnsafe(2 + TIME_BYTES + VERSION_BYTES);
  row[0] = AREA.age;
  row[1] = leavesLast ? 1 : 0;
  row.writeUIntBE(written, 2, TIME_BYTES);
  row.write(version, 2 + TIME_BYTES, "latin1");
  return row;
}

/** The rows of all that has ended by `now`. */
export function endedBy(now: number): { readonly start: Buffer; readonly end: Buffer } {
  const start = inArea(AREA.expiry, NOTHING);
  return { start, end: expiryRow(Math.min(NEVER, Math.floor(now) + 1), "\0".repeat(VERSION_BYTES)) };
}

/** The rows of what was written before a time; of entries, or of what leaves last. */
export function writtenBefore(
  time: number,
  leavesLast: boolean,
): { readonly start: Buffer; readonly end: Buffer } {
  const start = inArea(AREA.age, Buffer.from([leavesLast ? 1 : 0]));
  return { start, end: ageRow(Math.max(0, Math.floor(time)), leavesLast, "\0".repeat(VERSION_BYTES)) };
}

/** The rows of all records, in the order in which they make room. */
export const byAge = (): { readonly start: Buffer; readonly end: Buffer } => rangeOf(AREA.age, NOTHING);

/** The key of a record, as the value of its rows. */
export function rowValue(key: DiskKey): Buffer {
  if (typeof key !== "string") return key;
  const value = Buffer.allocUnsafe(1 + Buffer.byteLength(key));
  keyEncoder.writeKey(key, value, 0);
  return value;
}

/** Whether a row was made for the record that is there now. */
export const isRowOf = (row: Buffer, facts: Facts): boolean => rowsOf(facts).some((own) => own.equals(row));
