// What determines the result of a read besides rows: which database it runs in, and the settings of the session.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";

/** What the database reports about a connection. */
export interface Settings {
  /** Connections with the same fingerprint get the same rows for the same statement. */
  readonly fingerprint: string;
  /** Isolation level READ COMMITTED: each statement of a transaction sees what was committed before it. */
  readonly readsCommitted: boolean;
  /** Its reads must not be shared: it is on a replica, or has temporary tables. */
  readonly isUnshareable: boolean;
  readonly checkedTables: ReadonlySet<string>;
  /** In lower case, those of `checkedTables` that are real tables with the same rows for every reader. */
  readonly plainTables: ReadonlySet<string>;
}

type Row = Readonly<Record<string, unknown>>;

/** Every setting that changes what a plain SELECT returns. One that the server does not have reads as empty. */
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
 * A name is plain if every relation of that name, in any schema, is a table without row security; a view may depend on
 * anything. The server's start time distinguishes servers that have the same address in different networks.
 */
const POSTGRES_QUERY = `
SELECT pg_catalog.concat_ws(chr(31), current_database(), session_user, current_user, pg_postmaster_start_time(),
         current_schemas(true)${POSTGRES_SETTINGS.map((name) => `, coalesce(current_setting('${name}', true), '')`).join("")}
       )::text AS fingerprint,
       current_setting('transaction_isolation') AS isolation,
       (pg_is_in_recovery() OR pg_my_temp_schema() <> 0)::text AS unshareable,
       coalesce((SELECT string_agg(name, chr(31)) FROM (
         SELECT relname::text AS name FROM pg_catalog.pg_class
         WHERE relname = ANY (string_to_array($1, chr(31))) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
         GROUP BY relname HAVING bool_and(relkind IN ('r', 'p') AND NOT relrowsecurity)
       ) AS plain), '') AS tables`;

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
       coalesce((SELECT group_concat(name, char(31)) FROM sqlite_master
         WHERE type = 'table' AND sql NOT LIKE 'create virtual%'
         AND instr(char(31) || lower(?1) || char(31), char(31) || lower(name) || char(31)) > 0), '') AS tables`;

/** Queries the database. Rejects with the driver's error. */
export async function querySettings(driver: ConnectionDriver, tables: readonly string[]): Promise<Settings> {
  const query = driver.dialect === "postgres" ? POSTGRES_QUERY : SQLITE_QUERY;
  const [row] = await driver.query(query, [tables.join("\u001f")]);
  const plain = textOf(row, "tables").toLowerCase().split("\u001f");
  const isPostgres = driver.dialect === "postgres";
  // An application may have its SQLite driver return integers as bigint.
  const numbers = isPostgres ? "" : typeof row?.sample;
  const place = isPostgres || textOf(row, "file") !== "" ? driver.database : identityOf(driver);
  return {
    fingerprint: `${driver.dialect}\u001f${place}\u001f${textOf(row, "fingerprint")}${numbers}`,
    readsCommitted: isPostgres && /^read (un)?committed$/.test(textOf(row, "isolation")),
    checkedTables: new Set(tables),
    isUnshareable: textOf(row, "unshareable") !== "false",
    plainTables: new Set(plain),
  };
}

/** An in-memory database belongs to one connection. */
const identities = new WeakMap<ConnectionDriver, string>();

function identityOf(driver: ConnectionDriver): string {
  const identity = identities.get(driver) ?? nodeCrypto().randomUUID();
  identities.set(driver, identity);
  return identity;
}

/** Whether reads of these tables may be cached under these settings. */
export function areShareable(settings: Settings, tables: readonly string[]): boolean {
  return !settings.isUnshareable && tables.every((table) => settings.plainTables.has(table.toLowerCase()));
}

/** The same settings with the tables of both; the later report wins. */
export function combined(known: Settings, later: Settings): Settings {
  const earlier = [...known.plainTables].filter((table) => !covers(later, table));
  return {
    ...later,
    checkedTables: new Set([...known.checkedTables, ...later.checkedTables]),
    plainTables: new Set([...earlier, ...later.plainTables]),
  };
}

function covers({ checkedTables }: Settings, table: string): boolean {
  return [...checkedTables].some((checked) => checked.toLowerCase() === table);
}

function textOf(row: Row | undefined, column: string): string {
  return String(row?.[column] ?? "");
}
