// What MySQL 8 and MariaDB say about a connection, and about the tables and functions of a statement.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { analyse } from "../sql/analysis.ts";
import type { Trust } from "../sql/settled-statement.ts";
import { tokensOf } from "../sql/sql-tokens.ts";
import {
  ask,
  each,
  isNamed,
  isOwn,
  MOST_ROUNDS,
  NOTHING,
  type Row,
  tablesOfView,
  viewOf,
} from "./mysql-catalogue.ts";
import type { Names, Settings } from "./settings.ts";

/** Every setting that changes what a plain SELECT returns and that both servers have. */
const SETTINGS = [
  ...["sql_mode", "time_zone", "character_set_client", "character_set_connection", "character_set_results"],
  ...["collation_connection", "lc_time_names", "div_precision_increment", "group_concat_max_len"],
  ...["sql_select_limit", "max_sort_length", "default_week_format"],
];

/** Comments of either server, which the other one does not execute: a variable that it does not have would be an error. */
const ISOLATION = "/*M! @@tx_isolation */ /*!80000 @@transaction_isolation */";
const OTHER_SETTINGS = `
  /*M! , @@system_versioning_asof, @@old_mode, @@default_regex_flags, @@max_recursive_iterations */
  /*M!110201 , @@character_set_collations */
  /*!80000 , @@block_encryption_mode, @@windowing_use_high_precision */`;

/** How many temporary tables the session has made. MySQL counts all tables. */
const TEMPORARY_TABLES = `
  /*M! (SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'COM_CREATE_TEMPORARY_TABLE') */
  /*!80000 (SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Com_create_table') */`;

/**
 * A replica is read-only, unless somebody has changed that. With `sql_auto_is_null`, what a read finds depends on the last row
 * that its session has inserted. The mode ORACLE has a grammar of its own.
 */
const SESSION = `
  SELECT 'session' AS kind, CONCAT_WS(CHAR(31), COALESCE(DATABASE(), ''), CURRENT_USER(), COALESCE(CURRENT_ROLE(), ''),
      ${SETTINGS.map((name) => `@@${name}`).join(", ")} ${OTHER_SETTINGS}) AS name,
    CONCAT_WS(CHAR(31), @@hostname, @@port, @@datadir, @@server_id) AS detail,
    IF(${ISOLATION} = 'READ-UNCOMMITTED' OR @@global.read_only OR @@sql_auto_is_null OR @@sql_mode LIKE '%ORACLE%'
      OR ${TEMPORARY_TABLES} > 0, 'alone', '') AS more`;

const tableOf = (name: string): string =>
  `SELECT 'table', TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES
   WHERE TABLE_NAME = ${name} AND ${isOwn("TABLE_SCHEMA")}`;

const generatedOf = (name: string): string =>
  `SELECT 'generated', TABLE_NAME, GENERATION_EXPRESSION, '' FROM information_schema.COLUMNS
   WHERE TABLE_NAME = ${name} AND ${isOwn("TABLE_SCHEMA")} AND GENERATION_EXPRESSION <> ''`;

const about = (tables: readonly string[]): readonly string[] => [
  ...each(tables, tableOf),
  ...each(tables, generatedOf),
];

const functionOf = (name: string): string =>
  `SELECT 'function', ROUTINE_NAME, IS_DETERMINISTIC, SQL_DATA_ACCESS FROM information_schema.ROUTINES
   WHERE ROUTINE_NAME = ${name} AND ROUTINE_TYPE = 'FUNCTION'`;

/** What is not known of a connection's settings until it is put together with what every database has. */
export interface MysqlAnswer
  extends Pick<Settings, "fingerprint" | "isUnshareable" | "tables" | "functions"> {
  /** Identifies the server and the database. */
  readonly place: string;
}

/** Rejects with the driver's error. */
export async function mysqlSettings(driver: ConnectionDriver, names: Names): Promise<MysqlAnswer> {
  const questions = [SESSION, ...about(names.tables), ...each(names.functions, functionOf)];
  const rows = await ask(driver, questions);
  const session = rows.find(({ kind }) => kind === "session");
  const [database = ""] = (session?.name ?? "").split("\u001f");
  const resolved = new Map<string, readonly string[] | undefined>();
  for (const name of names.tables) resolved.set(name, await sourcesOf(driver, name, rows));
  return {
    fingerprint: `${session?.detail}\u001f${session?.name}`,
    isUnshareable: session?.more !== "",
    place: `${session?.detail}\u001f${database}`,
    tables: resolved,
    functions: new Map(names.functions.map((name) => [name, trustOf(name, rows)])),
  };
}

/** Only who declares it by both words has surely thought of a cache. */
function trustOf(name: string, rows: readonly Row[]): Trust {
  const found = rows.filter(isNamed("function", name));
  if (found.length === 0) return "absent";
  return found.every(({ detail, more }) => detail === "YES" && more === "NO SQL") ? "immutable" : "own";
}

const TABLE_TYPES = ["BASE TABLE", "SYSTEM VERSIONED"];
/** Other engines do not undo what a transaction wrote that is rolled back, or their rows are elsewhere. */
const ENGINES = ["InnoDB", "ROCKSDB"];
/** The tables whose writes change the rows of a table or view. undefined: its rows are not the same for every reader. */
async function sourcesOf(
  driver: ConnectionDriver,
  table: string,
  asked: readonly Row[],
): Promise<readonly string[] | undefined> {
  const sources = new Set<string>([table]);
  let [open, rows]: [readonly string[], readonly Row[]] = [[table], asked];
  for (let round = 0; open.length > 0; round++) {
    const views: string[] = [];
    for (const name of open) {
      const found = rows.filter(isNamed("table", name));
      const kinds = found.map(({ detail, more }) => kindOf(detail, more));
      if (kinds.length === 0 || kinds.includes(undefined) || round === MOST_ROUNDS) return undefined;
      if (!rows.filter(isNamed("generated", name)).every(({ detail }) => isPlainExpression(detail)))
        return undefined;
      if (kinds.includes("view")) views.push(name);
    }
    if (views.length === 0) return [...sources];
    const definitions = await ask(driver, [NOTHING, ...each(views, viewOf)]);
    const read = definitions.map(({ detail }) => tablesOfView(detail));
    if (definitions.length < views.length || read.includes(undefined)) return undefined;
    open = [...new Set(read.flatMap((tables) => tables ?? []))].filter((name) => !sources.has(name));
    for (const name of open) sources.add(name);
    rows = open.length === 0 ? [] : await ask(driver, [NOTHING, ...about(open)]);
  }
  return [...sources];
}

/** A virtual column of MariaDB may be computed of the time, or of the session that reads it. */
function isPlainExpression(expression: string): boolean {
  const tokens = tokensOf(expression, "mysql");
  if (tokens === undefined) return false;
  const { isPlain, calls } = analyse(tokens, "mysql");
  return isPlain && calls.calls === undefined;
}

function kindOf(type: string, engine: string): "table" | "view" | undefined {
  if (type === "VIEW") return "view";
  return TABLE_TYPES.includes(type) && ENGINES.includes(engine) ? "table" : undefined;
}
