// What a feed needs to know of a database of MariaDB: its server's settings, its tables, their keys, and what cascades.
import type { RowKey } from "../../core/db-session.ts";
import { ConfigError } from "../../core/errors.ts";
import type { BinlogTable, IntegerColumn } from "./binlog.ts";
import type { FeedCatalogue } from "./leader.ts";
import type { MysqlRow, MysqlSqlLink } from "./mysql-link.ts";
import type { Targets } from "./transaction-tags.ts";

const SERVER =
  "SELECT @@log_bin AS log_bin, @@binlog_format AS format, VERSION() AS version, DATABASE() AS name";

const TABLES = `
SELECT TABLE_NAME AS name FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_NAME`;

const KEYS = `
SELECT k.TABLE_NAME AS name, k.COLUMN_NAME AS column_name, c.ORDINAL_POSITION - 1 AS position,
  c.DATA_TYPE AS data_type, c.COLUMN_TYPE AS column_type
FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c
  ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME AND c.COLUMN_NAME = k.COLUMN_NAME
WHERE k.TABLE_SCHEMA = DATABASE() AND k.CONSTRAINT_NAME = 'PRIMARY'
ORDER BY k.TABLE_NAME, k.ORDINAL_POSITION`;

/** Of all databases. A user with the privilege SELECT alone sees these, and not their rules. */
const FOREIGN_KEYS = `
SELECT DISTINCT REFERENCED_TABLE_SCHEMA AS parent_schema, REFERENCED_TABLE_NAME AS parent,
  TABLE_SCHEMA AS child_schema, TABLE_NAME AS child, CONSTRAINT_NAME AS name
FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL ORDER BY 1, 2, 3, 4, 5`;

const RULES = `
SELECT CONSTRAINT_SCHEMA AS child_schema, TABLE_NAME AS child, CONSTRAINT_NAME AS name,
  DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT') AS cascades
FROM information_schema.REFERENTIAL_CONSTRAINTS`;

const TABLES_OF =
  "SELECT TABLE_SCHEMA AS of_schema, TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA IN (?)";

/** What one table's changes do to another: InnoDB does it by itself, and the binary log does not contain it. */
export interface Cascade {
  /** `schema.table` in lower case. */
  readonly parent: string;
  readonly child: string;
  /** The user cannot see whether it cascades; it is taken to. */
  readonly isGuess: boolean;
  /** The user cannot see the parent, so nobody knows what cascades to the parent. */
  readonly isHidden: boolean;
}

export async function readCascades(link: MysqlSqlLink): Promise<readonly Cascade[]> {
  const keys = await link.query(FOREIGN_KEYS);
  if (keys.length === 0) return [];
  const idOf = ({ child_schema, child, name }: MysqlRow): string =>
    JSON.stringify([child_schema, child, name]);
  const rules = new Map((await link.query(RULES)).map((row) => [idOf(row), Number(row.cascades) === 1]));
  const schemas = [...new Set(keys.map(({ parent_schema: schema }) => schema))];
  const tables = await link.query(TABLES_OF, [schemas]);
  const seen = new Set(tables.map((row) => spelled(row.of_schema, row.name)));
  return keys.flatMap((row) => {
    const rule = rules.get(idOf(row));
    if (rule === false) return [];
    const parent = spelled(row.parent_schema, row.parent);
    const child = spelled(row.child_schema, row.child);
    return [{ parent, child, isGuess: rule === undefined, isHidden: !seen.has(parent) }];
  });
}

/** Throws ConfigError if the server cannot be used. Returns the name of the database. */
export async function readMysqlServer(link: MysqlSqlLink): Promise<string> {
  const [row] = await link.query(SERVER);
  if (row?.name === null || row?.name === undefined) throw problem("the connection names no database");
  if (Number(row.log_bin) !== 1) throw problem("the server writes no binary log", "Start it with log_bin.");
  if (row.format !== "ROW") {
    throw problem(`binlog_format must be ROW, it is ${row.format}`, "SET GLOBAL binlog_format = ROW.");
  }
  if ((await link.snapshotPosition()) === undefined) {
    throw problem(
      `${row.version} does not say which position of the binary log a snapshot sees`,
      "A feed needs the status variable binlog_snapshot_position of MariaDB or Percona Server.",
    );
  }
  const name = String(row.name);
  if (await leavesOut(link, name)) {
    throw problem(
      `the binary log leaves out the database ${name}`,
      "Change binlog_do_db or binlog_ignore_db.",
    );
  }
  return name;
}

/** Whether changes of the database are not in the log. Rejects without the privilege to see the state of the log. */
export async function leavesOut(link: MysqlSqlLink, database: string): Promise<boolean> {
  const [row] = await link.query("SHOW MASTER STATUS");
  const list = (field: string): string[] =>
    String(row?.[field] ?? "")
      .split(",")
      .filter(Boolean);
  const only = list("Binlog_Do_DB");
  return (only.length > 0 && !only.includes(database)) || list("Binlog_Ignore_DB").includes(database);
}

function problem(message: string, hint = "Name one in the connection."): ConfigError {
  return new ConfigError("FEATURE_DISABLED", `feed: ${message}`, { hint });
}

interface KeyPart extends IntegerColumn {
  readonly name: string;
  readonly isInteger: boolean;
}

/** What the changes of a table concern. */
export interface TableChanges {
  /** The columns of its primary key; empty if one of them is not an integer. */
  readonly key: readonly IntegerColumn[];
  /** By its own inserts. */
  readonly inserted: Targets;
  /** By its updates and deletes: also the tables that these cascade to. */
  readonly changed: Targets;
}

export class MysqlCatalogue implements FeedCatalogue {
  readonly version: string;
  readonly keys: ReadonlyMap<string, RowKey>;
  readonly names: ReadonlySet<string>;
  readonly #database: string;
  readonly #parts: ReadonlyMap<string, readonly KeyPart[]>;
  /** By `schema.table` in lower case: the tables that its changes cascade to, directly. */
  readonly #cascades: ReadonlyMap<string, readonly string[]>;
  /** Tables that may change with any other one. */
  readonly #unpredictable: readonly string[];

  private constructor(
    database: string,
    tables: readonly MysqlRow[],
    keys: readonly MysqlRow[],
    cascades: readonly Cascade[],
  ) {
    this.version = JSON.stringify([tables, keys, cascades]);
    this.#database = database.toLowerCase();
    this.names = new Set(tables.map(({ name }) => String(name).toLowerCase()));
    this.#parts = grouped(keys, (row) => [String(row.name).toLowerCase(), keyPart(row)]);
    this.#cascades = grouped(cascades, ({ parent, child }) => [parent, child]);
    this.#unpredictable = cascades.filter(({ isHidden }) => isHidden).map(({ child }) => child);
    this.keys = new Map(
      [...this.#parts].flatMap(([name, parts]) =>
        // Texts compare without case and trailing spaces, so a read can name a row in many ways.
        parts.every(({ isInteger }) => isInteger)
          ? [[name, parts.map((part) => ({ name: part.name, kind: "number" as const }))] as const]
          : [],
      ),
    );
  }

  /** Throws ConfigError unless all `tables` are tables of the database. */
  static async read(
    link: MysqlSqlLink,
    database: string,
    tables: readonly string[],
  ): Promise<MysqlCatalogue> {
    const found = await link.query(TABLES);
    const catalogue = new MysqlCatalogue(database, found, await link.query(KEYS), await readCascades(link));
    const missing = tables.filter((table) => !catalogue.names.has(table));
    if (missing.length === 0) return catalogue;
    throw problem(
      `the database has no table ${missing.join(", ")}`,
      "A feed covers tables; name those behind a view.",
    );
  }

  /** undefined: nothing here changes with this table. */
  changesOf({ schema, name }: Pick<BinlogTable, "schema" | "name">): TableChanges | undefined {
    const isOwn = schema.toLowerCase() === this.#database;
    const cascaded = this.#below(spelled(schema, name));
    if (!isOwn && cascaded.length === 0) return undefined;
    const parts = this.#parts.get(name.toLowerCase()) ?? [];
    const key = isOwn && parts.every(({ isInteger }) => isInteger) ? parts : [];
    const places = key.map(({ position }) => position);
    const own = isOwn ? [{ name, key: places.length > 0 ? places : undefined }] : [];
    return {
      key,
      inserted: own,
      changed: [...own, ...cascaded.map((child) => ({ name: child, key: undefined }))],
    };
  }

  /** Whether a statement that changes a schema may change this one. `schema`: where it ran. */
  concerns(schema: string, text: string): boolean {
    return schema.toLowerCase() === this.#database || text.toLowerCase().includes(this.#database);
  }

  /** The tables of this database that changes cascade to, at any distance. */
  #below(table: string): readonly string[] {
    const below = (each: string): readonly string[] => this.#cascades.get(each) ?? [];
    // The table itself is one of them if its changes lead back to it: the log names only the rows they began with.
    const reached = new Set<string>([...below(table), ...this.#unpredictable]);
    for (const each of reached) for (const child of below(each)) reached.add(child);
    const prefix = `${this.#database}.`;
    return [...reached].flatMap((each) => (each.startsWith(prefix) ? [each.slice(prefix.length)] : []));
  }
}

const spelled = (schema: unknown, table: unknown): string => `${schema}.${table}`.toLowerCase();

const INTEGERS = new Set(["tinyint", "smallint", "mediumint", "int", "bigint"]);

function keyPart(row: MysqlRow): KeyPart {
  return {
    name: String(row.column_name).toLowerCase(),
    position: Number(row.position),
    isUnsigned: String(row.column_type).includes("unsigned"),
    isInteger: INTEGERS.has(String(row.data_type).toLowerCase()),
  };
}

function grouped<Row, T>(
  rows: readonly Row[],
  entryOf: (row: Row) => readonly [string, T],
): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const [key, value] of rows.map(entryOf)) groups.set(key, [...(groups.get(key) ?? []), value]);
  return groups;
}
