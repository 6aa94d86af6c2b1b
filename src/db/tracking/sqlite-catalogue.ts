// What SQLite's schema says of triggers and foreign keys: which tables a write touches besides its own.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { writtenIn } from "../sql/routine-body.ts";
import { recordsIn } from "./postgres-catalogue.ts";
import { Writes } from "./transaction.ts";

/** The same columns, in the same order, as the question about settings: some drivers return rows without names. */
const SAME_COLUMNS = "'' AS fingerprint, '' AS file, 1 AS sample, '' AS isolation, '' AS unshareable";

const STAMP = `SELECT ${SAME_COLUMNS}, '' AS tables, '' AS functions, (SELECT schema_version FROM pragma_schema_version) AS stamp`;

const ACTIONS = "('CASCADE', 'SET NULL', 'SET DEFAULT')";

const SCHEMA = `SELECT ${SAME_COLUMNS},
  coalesce((SELECT group_concat(tbl_name || char(30) || sql, char(31)) FROM sqlite_master WHERE type = 'trigger'), '')
    AS tables,
  coalesce((SELECT group_concat(f."table" || char(30) || m.name, char(31))
    FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
    WHERE m.type = 'table' AND (f.on_delete IN ${ACTIONS} OR f.on_update IN ${ACTIONS})), '') AS functions,
  (SELECT schema_version FROM pragma_schema_version) AS stamp`;

/** What a write to a table touches directly. */
type Effects = ReadonlyMap<string, ReadonlySet<string>>;

interface Schema {
  readonly stamp: string;
  readonly effects: Effects;
}

const schemas = new WeakMap<ConnectionDriver, Schema>();

/** Rejects with the driver's error. */
export async function touchedInSqlite(driver: ConnectionDriver, tables: Iterable<string>): Promise<Writes> {
  const effects = await effectsIn(driver);
  const touched = new Set([...tables].map((table) => table.toLowerCase()));
  // Also visits what is added meanwhile.
  for (const table of touched) for (const next of effects.get(table) ?? []) touched.add(next);
  return new Writes(touched);
}

async function effectsIn(driver: ConnectionDriver): Promise<Effects> {
  const known = schemas.get(driver);
  const [present] = known === undefined ? [] : await driver.query(STAMP, []);
  if (known !== undefined && known.stamp === String(present?.stamp)) return known.effects;
  const [row] = await driver.query(SCHEMA, []);
  const effects = new Map<string, Set<string>>();
  const add = (table: string, touched: readonly string[]): void => {
    const all = effects.get(table.toLowerCase()) ?? new Set();
    for (const each of touched) all.add(each.toLowerCase());
    effects.set(table.toLowerCase(), all);
  };
  for (const [table = "", text = ""] of recordsIn(String(row?.tables ?? "")))
    add(table, writtenIn(text, "sqlite").tables);
  for (const [parent = "", child = ""] of recordsIn(String(row?.functions ?? ""))) add(parent, [child]);
  schemas.set(driver, { stamp: String(row?.stamp), effects });
  return effects;
}
