// Removes what a row of an index leads to: its record, or the row alone where another record has taken that one's place.
import { type Change, removeRecord } from "./change.ts";
import type { Row } from "./environment.ts";
import { AREA } from "./layout/disk-key.ts";
import { isRowOf } from "./layout/index-row.ts";
import { storedKey } from "./layout/stored-key.ts";
import { type Facts, factsIn } from "./layout/stored-record.ts";

export interface RowRemoval {
  readonly change: Change;
  /** The record that is changed by it. */
  readonly key?: string;
  /** What leaves, unless the row led nowhere. */
  readonly facts?: Facts;
}

/** `bytes` is what lies where the row leads. */
export function removalBy({ key: row, value: diskKey }: Row, bytes: Buffer | undefined): RowRemoval {
  const facts = factsIn(bytes);
  if (bytes !== undefined && facts !== undefined) {
    return isRowOf(row, facts)
      ? { change: removeRecord(diskKey, facts), key: storedKey(diskKey, bytes), facts }
      : { change: { puts: [], removals: [row] } };
  }
  // What is damaged goes as well. Under a hash nobody can tell whose it is, and whether that is being written just now.
  return bytes === undefined || diskKey[0] === AREA.hashed
    ? { change: { puts: [], removals: [row] } }
    : { change: { puts: [], removals: [row, diskKey] }, key: storedKey(diskKey, bytes) };
}
