// What the information_schema of MySQL 8 and MariaDB says, and what a write touches by it.
import type { ConnectionDriver } from "../../core/db-session.ts";
import { writtenByMysqlTrigger } from "../sql/routine-body.ts";
import { callsOf } from "../sql/settled-statement.ts";
import { statementsIn } from "../sql/statement.ts";
import { Writes } from "./transaction.ts";

export const isOwn = (schema: string): string =>
  `${schema} NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')`;

/** Whatever the mode of the session, this cannot be anything but a literal. */
const literal = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

/** Comparing with one name at a time is what spares the server reading all tables. */
export const each = (names: readonly string[], question: (name: string) => string): readonly string[] =>
  names.map((name) => question(literal(name)));

export const viewOf = (name: string): string =>
  `SELECT 'view', TABLE_NAME, VIEW_DEFINITION, '' FROM information_schema.VIEWS
   WHERE TABLE_NAME = ${name} AND ${isOwn("TABLE_SCHEMA")}`;

const triggerOf = (name: string): string =>
  `SELECT 'trigger', EVENT_OBJECT_TABLE, ACTION_STATEMENT, SQL_MODE FROM information_schema.TRIGGERS
   WHERE EVENT_OBJECT_TABLE = ${name} AND ${isOwn("EVENT_OBJECT_SCHEMA")}`;

export interface Row {
  readonly kind: string;
  readonly name: string;
  readonly detail: string;
  readonly more: string;
}

/** The first question names the columns. */
export const NOTHING = "SELECT '' AS kind, '' AS name, '' AS detail, '' AS more FROM DUAL WHERE FALSE";

export async function ask(driver: ConnectionDriver, questions: readonly string[]): Promise<readonly Row[]> {
  // Without a limit of its own, the one of the session would leave rows out.
  const rows = await driver.query(`${questions.join(" UNION ALL ")} LIMIT 1000000`, []);
  return rows.map(({ kind, name, detail, more }) => ({
    kind: String(kind),
    name: String(name),
    detail: String(detail ?? ""),
    more: String(more ?? ""),
  }));
}

export const isNamed =
  (kind: string, name: string) =>
  (row: Row): boolean =>
    row.kind === kind && row.name.toLowerCase() === name.toLowerCase();

/** Views over views ... */
export const MOST_ROUNDS = 5;

/** undefined: it depends on more than rows, or the user may not see it. */
export function tablesOfView(definition: string): readonly string[] | undefined {
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

const SCHEMAS = `SELECT 'schema', SCHEMA_NAME, '', '' FROM information_schema.SCHEMATA WHERE ${isOwn("SCHEMA_NAME")}`;

const placeOf = (name: string): string =>
  `SELECT 'place', TABLE_SCHEMA, '', '' FROM information_schema.TABLES
   WHERE TABLE_NAME = ${name} AND ${isOwn("TABLE_SCHEMA")}`;

const ACTIONS = "('CASCADE', 'SET NULL', 'SET DEFAULT')";

const cascadesIn = (schema: string): string =>
  `SELECT 'cascade', REFERENCED_TABLE_NAME, TABLE_NAME, '' FROM information_schema.REFERENTIAL_CONSTRAINTS
   WHERE CONSTRAINT_SCHEMA = ${schema} AND (DELETE_RULE IN ${ACTIONS} OR UPDATE_RULE IN ${ACTIONS})`;

/** What is written along by triggers, foreign keys and through views. Rejects with the driver's error. */
export async function touchedInMysql(driver: ConnectionDriver, tables: Iterable<string>): Promise<Writes> {
  // What a backslash in a literal means depends on a mode.
  const writes = new Writes(
    tables,
    [...tables].some((name) => name.includes("\\")),
  );
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
