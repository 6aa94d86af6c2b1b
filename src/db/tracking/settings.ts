// What besides rows decides the result of a read: the database it is in, and the settings of the session.

import type { ConnectionDriver } from "../../core/db-session.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";

/** What a database said about a connection. */
export interface Settings {
  /** Two connections with the same one see the same rows for the same statement. */
  readonly fingerprint: string;
  /** Each statement of a transaction sees what was committed before it. */
  readonly readsCommitted: boolean;
  /** Nothing read over this connection is anybody else's business: a replica, or tables of its own. */
  readonly isPeculiar: boolean;
  readonly askedTables: ReadonlySet<string>;
  /** Of the tables asked about, in lower case: those that are tables, and the same for everybody who may read them. */
  readonly plainTables: ReadonlySet<string>;
}

type Row = Readonly<Record<string, unknown>>;

/** Everything that changes what a plain SELECT returns. A setting that the server does not have is empty. */
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
 * A name is plain when every relation of that name, in whichever schema, is a table without row security; a view may
 * depend on anything. The start of the server tells servers apart that have one address in two networks.
 */
const POSTGRES_QUESTION = `
SELECT pg_catalog.concat_ws(chr(31), current_database(), session_user, current_user, pg_postmaster_start_time(),
         current_schemas(true)${POSTGRES_SETTINGS.map((name) => `, coalesce(current_setting('${name}', true), '')`).join("")}
       )::text AS fingerprint,
       current_setting('transaction_isolation') AS isolation,
       (pg_is_in_recovery() OR pg_my_temp_schema() <> 0)::text AS peculiar,
       coalesce((SELECT string_agg(name, chr(31)) FROM (
         SELECT relname::text AS name FROM pg_catalog.pg_class
         WHERE relname = ANY (string_to_array($1, chr(31))) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
         GROUP BY relname HAVING bool_and(relkind IN ('r', 'p') AND NOT relrowsecurity)
       ) AS plain), '') AS tables`;

/**
 * Tables of the connection alone hide those of the file, and in files that were attached a view may have the name of a
 * table. How LIKE treats case is a setting that cannot be asked for.
 */
const SQLITE_QUESTION = `
SELECT (SELECT file || char(31) FROM pragma_database_list WHERE name = 'main') || ('a' LIKE 'A') AS fingerprint,
       (SELECT file FROM pragma_database_list WHERE name = 'main') AS file,
       1 AS sample,
       '' AS isolation,
       CASE WHEN EXISTS (SELECT 1 FROM sqlite_temp_master)
         OR EXISTS (SELECT 1 FROM pragma_database_list WHERE name NOT IN ('main', 'temp'))
         THEN 'true' ELSE 'false' END AS peculiar,
       coalesce((SELECT group_concat(name, char(31)) FROM sqlite_master
         WHERE type = 'table' AND sql NOT LIKE 'create virtual%'
         AND instr(char(31) || lower(?1) || char(31), char(31) || lower(name) || char(31)) > 0), '') AS tables`;

/** Asks the database of a connection. Rejects with the driver's error. */
export async function askSettings(driver: ConnectionDriver, tables: readonly string[]): Promise<Settings> {
  const question = driver.dialect === "postgres" ? POSTGRES_QUESTION : SQLITE_QUESTION;
  const [row] = await driver.ask(question, [tables.join("\u001f")]);
  const plain = textOf(row, "tables").toLowerCase().split("\u001f");
  const isPostgres = driver.dialect === "postgres";
  // Of SQLite's whole numbers an application may want others than JavaScript's.
  const numbers = isPostgres ? "" : typeof row?.sample;
  const place = isPostgres || textOf(row, "file") !== "" ? driver.database : identityOf(driver);
  return {
    fingerprint: `${driver.dialect}\u001f${place}\u001f${textOf(row, "fingerprint")}${numbers}`,
    readsCommitted: isPostgres && /^read (un)?committed$/.test(textOf(row, "isolation")),
    askedTables: new Set(tables),
    isPeculiar: textOf(row, "peculiar") !== "false",
    plainTables: new Set(plain),
  };
}

/** A database in memory is its connection's own. */
const identities = new WeakMap<ConnectionDriver, string>();

function identityOf(driver: ConnectionDriver): string {
  const identity = identities.get(driver) ?? nodeCrypto().randomUUID();
  identities.set(driver, identity);
  return identity;
}

/** Whether reads of these tables may be cached under these settings. */
export function areShareable(settings: Settings, tables: readonly string[]): boolean {
  return !settings.isPeculiar && tables.every((table) => settings.plainTables.has(table.toLowerCase()));
}

/** The same settings, asked about more tables; the later answer counts. */
export function combined(known: Settings, later: Settings): Settings {
  const earlier = [...known.plainTables].filter((table) => !asks(later, table));
  return {
    ...later,
    askedTables: new Set([...known.askedTables, ...later.askedTables]),
    plainTables: new Set([...earlier, ...later.plainTables]),
  };
}

function asks({ askedTables }: Settings, table: string): boolean {
  return [...askedTables].some((asked) => asked.toLowerCase() === table);
}

function textOf(row: Row | undefined, column: string): string {
  return String(row?.[column] ?? "");
}
