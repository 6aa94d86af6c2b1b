// What the information_schema of MySQL 8 and MariaDB says: what a read depends on, and what a write touches.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { writtenByMysqlTrigger } from "../sql/routine-body.ts";
import { callsOf, type Trust } from "../sql/settled-statement.ts";
import { statementsIn } from "../sql/statement.ts";
import type { Names, Settings } from "./settings.ts";
import { Writes } from "./transaction.ts";

/** Every setting that changes what a plain SELECT returns and that both servers have. */
const SETTINGS = [
  ...["sql_mode", "time_zone", "character_set_client", "character_set_connection", "character_set_results"],
  ...["collation_connection", "lc_time_names", "div_precision_increment", "group_concat_max_len"],
  ...["sql_auto_is_null", "sql_select_limit", "max_sort_length", "default_week_format"],
];

/** Comments of either server, which the other one does not execute: a variable that it does not have would be an error. */
const ISOLATION = "/*M! @@tx_isolation */ /*!80000 @@transaction_isolation */";
const OTHER_SETTINGS = "/*M! , @@system_versioning_asof, @@old_mode */ /*!80000 , @@block_encryption_mode */";

/** How many temporary tables the session has made. MySQL counts all tables. */
const TEMPORARY_TABLES = `
  /*M! (SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'COM_CREATE_TEMPORARY_TABLE') */
  /*!80000 (SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Com_create_table') */`;

/** A replica is read-only, unless somebody has changed that. */
const SESSION = `
  SELECT 'session' AS kind, CONCAT_WS(CHAR(31), COALESCE(DATABASE(), ''), CURRENT_USER(), COALESCE(CURRENT_ROLE(), ''),
      ${SETTINGS.map((name) => `@@${name}`).join(", ")} ${OTHER_SETTINGS}) AS name,
    CONCAT_WS(CHAR(31), @@hostname, @@port, @@datadir, @@server_id) AS detail,
    IF(${ISOLATION} = 'READ-UNCOMMITTED' OR @@global.read_only OR ${TEMPORARY_TABLES} > 0, 'alone', '') AS more`;

const IS_OWN = (schema: string): string =>
  `${schema} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')`;

/** Whatever the mode of the session, this cannot be anything but a literal. */
const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

/** Comparing with one name at a time is what spares the server reading all tables. */
const each = (names: readonly string[], question: (name: string) => string): readonly string[] =>
  names.map((name) => question(literal(name)));

const tableOf = (name: string): string =>
  `SELECT 'table', TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES
   WHERE TABLE_NAME = ${name} AND ${IS_OWN("TABLE_SCHEMA")}`;

const viewOf = (name: string): string =>
  `SELECT 'view', TABLE_NAME, VIEW_DEFINITION, '' FROM information_schema.VIEWS
   WHERE TABLE_NAME = ${name} AND ${IS_OWN("TABLE_SCHEMA")}`;

const functionOf = (name: string): string =>
  `SELECT 'function', ROUTINE_NAME, IS_DETERMINISTIC, SQL_DATA_ACCESS FROM information_schema.ROUTINES
   WHERE ROUTINE_NAME = ${name} AND ROUTINE_TYPE = 'FUNCTION'`;

const triggerOf = (name: string): string =>
  `SELECT 'trigger', EVENT_OBJECT_TABLE, ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS
   WHERE EVENT_OBJECT_TABLE = ${name} AND ${IS_OWN("EVENT_OBJECT_SCHEMA")}`;

interface Row {
  readonly kind: string;
  readonly name: string;
  readonly detail: string;
  readonly more: string;
}

/** The first question names the columns. */
const NOTHING = "SELECT '' AS kind, '' AS name, '' AS detail, '' AS more FROM DUAL WHERE FALSE";

async function ask(driver: ConnectionDriver, questions: readonly string[]): Promise<readonly Row[]> {
  const rows = await driver.query(questions.join(" UNION ALL "), []);
  return rows.map(({ kind, name, detail, more }) => ({
    kind: String(kind),
    name: String(name),
    detail: String(detail ?? ""),
    more: String(more ?? ""),
  }));
}

/** What is not known of a connection's settings until it is put together with what every database has. */
export interface MysqlAnswer
  extends Pick<Settings, "fingerprint" | "isUnshareable" | "tables" | "functions"> {
  /** Identifies the server and the database. */
  readonly place: string;
}

/** Rejects with the driver's error. */
export async function mysqlSettings(driver: ConnectionDriver, names: Names): Promise<MysqlAnswer> {
  const questions = [SESSION, ...each(names.tables, tableOf), ...each(names.functions, functionOf)];
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

const isNamed =
  (kind: string, name: string) =>
  (row: Row): boolean =>
    row.kind === kind && row.name.toLowerCase() === name.toLowerCase();

/** Only who declares it by both words has surely thought of a cache. */
function trustOf(name: string, rows: readonly Row[]): Trust {
  const found = rows.filter(isNamed("function", name));
  if (found.length === 0) return "absent";
  return found.every(({ detail, more }) => detail === "YES" && more === "NO SQL") ? "immutable" : "own";
}

const TABLE_TYPES = ["BASE TABLE", "SYSTEM VERSIONED"];
/** Other engines do not undo what a transaction wrote that is rolled back, or their rows are elsewhere. */
const ENGINES = ["InnoDB", "ROCKSDB"];
/** Views over views ... */
const MOST_ROUNDS = 5;

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
      if (kinds.includes("view")) views.push(name);
    }
    if (views.length === 0) return [...sources];
    const definitions = await ask(driver, [NOTHING, ...each(views, viewOf)]);
    const read = definitions.map(({ detail }) => tablesOfView(detail));
    if (definitions.length < views.length || read.includes(undefined)) return undefined;
    open = [...new Set(read.flatMap((tables) => tables ?? []))].filter((name) => !sources.has(name));
    for (const name of open) sources.add(name);
    rows = open.length === 0 ? [] : await ask(driver, [NOTHING, ...each(open, tableOf)]);
  }
  return [...sources];
}

function kindOf(type: string, engine: string): "table" | "view" | undefined {
  if (type === "VIEW") return "view";
  return TABLE_TYPES.includes(type) && ENGINES.includes(engine) ? "table" : undefined;
}

/** undefined: it depends on more than rows, or the user may not see it. */
function tablesOfView(definition: string): readonly string[] | undefined {
  const [statement] = statementsIn(definition, "mysql");
  return statement?.kind === "read" && callsOf(statement).length === 0 ? statement.tables : undefined;
}

const GRANTEE = `CONCAT('''', SUBSTRING(CURRENT_USER(), 1, LENGTH(CURRENT_USER()) - LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1),
  '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`;

/** Triggers are shown only to those who may make them. */
const MAY_SEE_TRIGGERS = [
  `SELECT 'sees', '%', '', '' FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ${GRANTEE}`,
  `SELECT 'sees', TABLE_SCHEMA, '', '' FROM information_schema.SCHEMA_PRIVILEGES
   WHERE PRIVILEGE_TYPE = 'TRIGGER' AND GRANTEE = ${GRANTEE}`,
];

const SCHEMAS = `SELECT 'schema', SCHEMA_NAME, '', '' FROM information_schema.SCHEMATA WHERE ${IS_OWN("SCHEMA_NAME")}`;

const placeOf = (name: string): string =>
  `SELECT 'place', TABLE_SCHEMA, '', '' FROM information_schema.TABLES
   WHERE TABLE_NAME = ${name} AND ${IS_OWN("TABLE_SCHEMA")}`;

const ACTIONS = "('CASCADE', 'SET NULL', 'SET DEFAULT')";

const cascadesIn = (schema: string): string =>
  `SELECT 'cascade', REFERENCED_TABLE_NAME, TABLE_NAME, '' FROM information_schema.REFERENTIAL_CONSTRAINTS
   WHERE CONSTRAINT_SCHEMA = ${schema} AND (DELETE_RULE IN ${ACTIONS} OR UPDATE_RULE IN ${ACTIONS})`;

/** What is written along by triggers, foreign keys and through views. Rejects with the driver's error. */
export async function touchedInMysql(driver: ConnectionDriver, tables: Iterable<string>): Promise<Writes> {
  const writes = new Writes(tables);
  let open: readonly string[] = [...writes.tables];
  let cascades: readonly Row[] | undefined;
  for (let round = 0; open.length > 0 && !writes.anything; round++) {
    if (round === MOST_ROUNDS) writes.add([], true);
    const questions = [triggerOf, viewOf, placeOf].flatMap((question) => each(open, question));
    const rows = await ask(driver, [NOTHING, SCHEMAS, ...MAY_SEE_TRIGGERS, ...questions]);
    cascades ??= await ask(driver, [NOTHING, ...each(namesOf(rows, "schema"), cascadesIn)]);
    const next = new Writes([], !seesTriggers(rows));
    for (const { kind, detail, more } of rows) {
      if (kind === "trigger") {
        const written = writtenByMysqlTrigger(detail);
        // In this mode a backslash in a literal is a backslash.
        next.add(written.tables, written.anything || more.includes("NO_BACKSLASH_ESCAPES"));
      } else if (kind === "view") next.add(tablesOfView(detail) ?? [], tablesOfView(detail) === undefined);
    }
    for (const name of open) {
      const children = cascades.filter(isNamed("cascade", name)).map(({ detail }) => detail);
      next.add(children, false);
    }
    open = [...next.tables].filter((name) => !writes.tables.has(name));
    writes.add(open, next.anything);
  }
  return writes;
}

const namesOf = (rows: readonly Row[], kind: string): readonly string[] =>
  rows.filter((row) => row.kind === kind).map(({ name }) => name);

/** Whether the user would see the triggers of all databases that have one of the tables. */
function seesTriggers(rows: readonly Row[]): boolean {
  const patterns = namesOf(rows, "sees").map(likePattern);
  return namesOf(rows, "place").every((schema) => patterns.some((pattern) => pattern.test(schema)));
}

/** A database in a grant may be written with wildcards. */
function likePattern(text: string): RegExp {
  const source = text.replace(/\\?[\s\S]/g, (part) => {
    if (part === "%") return "[\\s\\S]*";
    if (part === "_") return "[\\s\\S]";
    return part.slice(-1).replace(/[\\^$.*+?()[\]{}|]/, "\\$&");
  });
  return new RegExp(`^${source}$`, "i");
}
