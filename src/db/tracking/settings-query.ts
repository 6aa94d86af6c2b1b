// The question about a connection's settings and about the tables and functions of a statement.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";
import { isCacheableCall, type Trust } from "../sql/settled-statement.ts";
import { type Catalogue, catalogueOf, type ResolvedTables } from "./catalogue.ts";
import { mysqlSettings } from "./mysql-settings.ts";
import {
  DEEP_TABLES,
  functionsNamed,
  NO_FUNCTIONS,
  RECORD,
  RECORDS,
  recordsIn,
  TABLES,
  TABLES_STAMP,
  trustOf,
  trustsIn,
} from "./postgres-catalogue.ts";
import type { Names, Settings } from "./settings.ts";

type Row = Readonly<Record<string, unknown>>;

/** Every setting that changes what a plain SELECT returns. One that the server does not have is NULL. */
const POSTGRES_SETTINGS = [
  ...["search_path", "timezone", "datestyle", "intervalstyle", "bytea_output", "extra_float_digits"],
  ...["client_encoding", "lc_monetary", "lc_numeric", "lc_time", "standard_conforming_strings"],
  ...["backslash_quote", "transform_null_equals", "array_nulls", "xmlbinary", "xmloption", "row_security"],
  ...["default_text_search_config", "gin_fuzzy_search_limit", "quote_all_identifiers"],
  ...["timezone_abbreviations", "role", "is_superuser"],
  ...["pg_trgm.similarity_threshold", "pg_trgm.word_similarity_threshold"],
  ...["pg_trgm.strict_word_similarity_threshold", "hnsw.ef_search", "hnsw.iterative_scan", "ivfflat.probes"],
];

/**
 * What has an id is a transaction that has written: a library may hide that one is open. Relations and functions of a name count in
 * whatever schema they are. The server's start time distinguishes servers that have the same address in different networks.
 * The server parses and plans it with every load: the settings are therefore one call for all of them, not one for each.
 */
const postgresQuery = (tables: string, functions: string): string => `
SELECT pg_catalog.concat_ws(${RECORDS}, session_user, current_user, pg_catalog.current_schemas(true),
         ARRAY(SELECT pg_catalog.current_setting(pg_catalog.unnest('{${POSTGRES_SETTINGS.join(",")}}'::text[]), true))) AS fingerprint,
       pg_catalog.concat_ws(${RECORDS}, pg_catalog.current_database(), pg_catalog.pg_postmaster_start_time()) AS file,
       pg_catalog.current_setting('transaction_isolation') AS isolation,
       (pg_catalog.pg_is_in_recovery() OR pg_catalog.pg_my_temp_schema() <> 0 OR pg_catalog.txid_current_if_assigned() IS NOT NULL)::text AS unshareable,
       ${tables}, ${functions}`;

interface Question {
  readonly text: string;
  /** Also about functions, whose names are its last value. */
  readonly withFunctions: string;
}

const questionAbout = (tables: string, values: number): Question => ({
  text: postgresQuery(tables, NO_FUNCTIONS),
  withFunctions: postgresQuery(tables, functionsNamed(`$${values + 1}`)),
});

const PLAIN_QUESTION = questionAbout(TABLES, 1);
const DEEP_QUESTION = questionAbout(DEEP_TABLES, 1);
const STAMP_QUESTION = questionAbout(TABLES_STAMP, 3);

/**
 * Temporary tables hide those of the file, and in an attached file a view may have the name of a table. Whether LIKE ignores
 * case is a setting that no pragma reports, so it is tried out.
 */
const SQLITE_QUERY = `
SELECT (SELECT file || char(31) FROM pragma_database_list WHERE name = 'main') || ('a' LIKE 'A') AS fingerprint,
       (SELECT file FROM pragma_database_list WHERE name = 'main') AS file,
       1 AS sample,
       '' AS isolation,
       CASE WHEN EXISTS (SELECT 1 FROM sqlite_temp_master)
         OR EXISTS (SELECT 1 FROM pragma_database_list WHERE name NOT IN ('main', 'temp'))
         THEN 'true' ELSE 'false' END AS unshareable,
       coalesce((SELECT group_concat(name || char(30) || 'plain', char(31)) FROM sqlite_master
         WHERE type = 'table' AND sql NOT LIKE 'create virtual%'
         AND instr(char(31) || lower(?1) || char(31), char(31) || lower(name) || char(31)) > 0), '') AS tables,
       coalesce((SELECT group_concat(name || char(30) || trust, char(31)) FROM (
         SELECT lower(name) AS name, CASE WHEN min(builtin) = 1 THEN 'built-in'
           WHEN min(max(builtin, (flags & 2048) <> 0)) = 1 THEN 'immutable' ELSE 'own' END AS trust
         FROM pragma_function_list
         WHERE instr(char(31) || ?2 || char(31), char(31) || lower(name) || char(31)) > 0 GROUP BY lower(name))), '') AS functions,
       '' AS stamp`;

/** Queries the database. Rejects with the driver's error. `known`: what earlier questions have found out. */
export async function querySettings(
  driver: ConnectionDriver,
  names: Names,
  known?: Catalogue,
): Promise<Settings> {
  const { tables, functions } = names;
  if (driver.dialect === "mysql") return settingsOfMysql(driver, names);
  const key = tables.join(RECORD);
  if (driver.dialect === "sqlite") {
    const [row] = await driver.query(SQLITE_QUERY, [key, functions.join(RECORD)]);
    return settingsOf(driver, row, names, plainTables(recordsIn(textOf(row, "tables")), tables, false));
  }
  const answer = known?.resolved.get(key);
  const isDeep = known !== undefined && tables.some((table) => known.deepTables.has(table));
  if (answer !== undefined) {
    const ids = [answer.relations.join(RECORD), answer.functions.join(RECORD)];
    const row = await ask(driver, STAMP_QUESTION, [key, ...ids], functions);
    if (textOf(row, "tables") === answer.stamp) return settingsOf(driver, row, names, answer.tables);
    return queryDeep(driver, names, { ...answer, stamp: textOf(row, "tables") });
  }
  if (isDeep) return queryDeep(driver, names);
  const row = await ask(driver, PLAIN_QUESTION, [key], functions);
  const records = recordsIn(textOf(row, "tables"));
  const settings = settingsOf(driver, row, names, plainTables(records, tables, true));
  const deep = records.filter(([, state]) => state === "deep").map(([name = ""]) => name);
  for (const name of deep) settings.catalogue.deepTables.add(name);
  return deep.length === 0 ? settings : queryDeep(driver, names);
}

async function ask(
  driver: ConnectionDriver,
  { text, withFunctions }: Question,
  values: readonly string[],
  functions: readonly string[],
): Promise<Row | undefined> {
  const [row] =
    functions.length === 0
      ? await driver.query(text, values)
      : await driver.query(withFunctions, [...values, functions.join(RECORD)]);
  return row;
}

async function settingsOfMysql(driver: ConnectionDriver, names: Names): Promise<Settings> {
  const { fingerprint, place, ...answer } = await mysqlSettings(driver, names);
  const catalogue = catalogueOf(`${driver.database}${RECORD}${place}`);
  catalogue.learn(answer.functions, "");
  // Its transactions read a snapshot, unless a level was set for one of them that no variable tells.
  return {
    ...answer,
    fingerprint: `mysql${RECORD}${driver.database}${RECORD}${fingerprint}`,
    readsCommitted: false,
    catalogue,
  };
}

/** `previous`: the answer that may have changed, with the stamp of now. */
async function queryDeep(
  driver: ConnectionDriver,
  names: Names,
  previous?: ResolvedTables,
): Promise<Settings> {
  const key = names.tables.join(RECORD);
  const row = await ask(driver, DEEP_QUESTION, [key], names.functions);
  const answer = deepTables(recordsIn(textOf(row, "tables")), names.tables);
  const settings = settingsOf(driver, row, names, answer.tables);
  const isSame =
    previous !== undefined &&
    previous.relations.join() === answer.relations.join() &&
    previous.functions.join() === answer.functions.join();
  settings.catalogue.resolve(key, { ...answer, stamp: isSame ? previous.stamp : undefined });
  return settings;
}

function settingsOf(
  driver: ConnectionDriver,
  row: Row | undefined,
  names: Names,
  tables: Resolved,
): Settings {
  const isPostgres = driver.dialect === "postgres";
  // An application may have its SQLite driver return integers as bigint.
  const numbers = isPostgres ? "" : typeof row?.sample;
  const place = isPostgres || textOf(row, "file") !== "" ? driver.database : identityOf(driver);
  const catalogue = catalogueOf(
    isPostgres ? `${driver.database}${RECORD}${textOf(row, "file")}` : identityOf(driver),
  );
  const named = isPostgres ? trustsIn : trustsInSqlite;
  const functions = named(textOf(row, "functions"), names.functions);
  catalogue.learn(functions, textOf(row, "stamp"));
  return {
    fingerprint: [driver.dialect, place, textOf(row, "file"), textOf(row, "fingerprint"), numbers].join(
      RECORD,
    ),
    readsCommitted: isPostgres && /^read (un)?committed$/.test(textOf(row, "isolation")),
    isUnshareable: textOf(row, "unshareable") !== "false",
    tables,
    functions,
    catalogue,
  };
}

function trustsInSqlite(text: string, names: readonly string[]): ReadonlyMap<string, Trust> {
  const found = new Map(recordsIn(text).map(([name = "", trust]) => [name, trust as Trust]));
  return new Map(names.map((name) => [name, found.get(name) ?? "absent"]));
}

type Resolved = Settings["tables"];
type Records = ReturnType<typeof recordsIn>;

function plainTables(records: Records, asked: readonly string[], isExact: boolean): Resolved {
  const nameOf = (name: string): string => (isExact ? name : name.toLowerCase());
  const plain = new Map<string, boolean>();
  for (const [name = "", state] of records)
    plain.set(nameOf(name), plain.get(nameOf(name)) !== false && state === "plain");
  return new Map(asked.map((name) => [name, plain.get(nameOf(name)) === true ? [name] : undefined]));
}

/** Relations whose rows may be kept, if all that they are made of are such. */
const CACHEABLE_KINDS = ["r", "p", "v", "m"];

function deepTables(records: Records, asked: readonly string[]): ResolvedTables {
  const sources = new Map<string, Set<string>>();
  const refused = new Set<string>();
  const [relations, functions] = [new Set<string>(), new Set<string>()];
  for (const [kind, name = "", detail = "", ...rest] of records) {
    if (kind === "relation") {
      const [relkind = "", hasRowSecurity, role, id = ""] = rest;
      relations.add(id);
      if (role !== "up" && (!CACHEABLE_KINDS.includes(relkind) || hasRowSecurity === "t")) refused.add(name);
      const all = sources.get(name) ?? new Set();
      // Writes to a partition invalidate the tables that it is part of.
      if (role !== "part") all.add(detail);
      sources.set(name, all);
    } else if (kind === "function") {
      const [id = "", ...facts] = rest;
      functions.add(id);
      if (!isCacheableCall(detail, trustOf([facts]))) refused.add(name);
    } else refused.add(name);
  }
  const found = (name: string) => (refused.has(name) ? undefined : sources.get(name));
  return {
    tables: new Map(asked.map((name) => [name, found(name) && [...(found(name) ?? [])]])),
    relations: [...relations].sort(),
    functions: [...functions].sort(),
  };
}

/** An in-memory database belongs to one connection. */
const identities = new WeakMap<ConnectionDriver, string>();

function identityOf(driver: ConnectionDriver): string {
  const identity = identities.get(driver) ?? nodeCrypto().randomUUID();
  identities.set(driver, identity);
  return identity;
}

function textOf(row: Row | undefined, column: string): string {
  return String(row?.[column] ?? "");
}
