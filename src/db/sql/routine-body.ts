// Which tables the body of a trigger writes, as far as its text proves.
import { analyse } from "./analysis.ts";
import { changedBy } from "./mysql-statement.ts";
import { callKind } from "./sql-functions.ts";
import { isMark, isWord, type SqlDialect, type Token, tokensOf } from "./sql-tokens.ts";

export interface BodyWrites {
  readonly tables: readonly string[];
  /** It may write tables that it does not name. */
  readonly anything: boolean;
}

const NOTHING: BodyWrites = { tables: [], anything: false };
const ANYTHING: BodyWrites = { tables: [], anything: true };

/** The body of a function of PostgreSQL. */
export function writtenByFunction(body: string, language: string): BodyWrites {
  // The database's own trigger functions change only the row they are called for.
  if (language === "internal") return NOTHING;
  return language === "plpgsql" ? writtenIn(body, "postgres") : ANYTHING;
}

/** Statements that run other code, or change more than rows. */
const UNSURE_WORDS: ReadonlySet<string> = new Set([
  ...["execute", "call", "copy", "truncate", "create", "alter", "drop", "refresh", "import", "lock"],
]);

/** Keywords of PL/pgSQL that a parenthesis may follow. */
const NOT_CALLS: ReadonlySet<string> = new Set([
  ...["if", "elsif", "elseif", "return", "while", "until", "assert", "exit", "continue", "perform", "raise"],
]);

/** The statements of a body, or of the whole text that creates a trigger in SQLite. */
export function writtenIn(body: string, dialect: SqlDialect): BodyWrites {
  const tokens = tokensOf(body, dialect);
  if (tokens === undefined) return ANYTHING;
  const tables = new Set<string>();
  for (const [at, token] of tokens.entries()) {
    if (token.kind === "mark" || token.kind === "text") continue;
    const target = targetAt(tokens, at);
    if (target !== undefined) tables.add(target);
    // Functions of SQLite cannot write.
    if (dialect === "postgres" && (UNSURE_WORDS.has(token.text) || isUnknownCall(tokens, at)))
      return ANYTHING;
  }
  return { tables: [...tables], anything: false };
}

/** The body of a trigger of MySQL. Parts of its statements may be taken for statements: more tables do no harm. */
export function writtenByMysqlTrigger(body: string): BodyWrites {
  const tokens = tokensOf(body, "mysql");
  if (tokens === undefined) return ANYTHING;
  const isUnsure = tokens.some((token) => isWord(token, "call"));
  const calls = analyse(tokens, "mysql").calls.calls?.map(({ name }) => name) ?? [];
  const tables = new Set<string>();
  const columnLists = new Set<string>();
  for (const [at, token] of tokens.entries()) {
    if (token.kind !== "word" || !CHANGES.has(token.text) || isMark(tokens[at + 1], "(")) continue;
    if (isWord(tokens[at - 1], "for") || isWord(tokens[at - 1], "key")) continue;
    const end = tokens.findIndex((each, index) => index > at && isMark(each, ";"));
    const statement = tokens.slice(at, end < 0 ? undefined : end);
    const changed = changedBy(statement);
    if (changed.tables.length === 0) return ANYTHING;
    for (const table of changed.tables) tables.add(table);
    // The table of an INSERT with its columns looks like a call.
    if (isMark(statement[changed.at], "(")) columnLists.add(statement[changed.at - 1]?.text ?? "");
  }
  const isUnknown = calls.some((name) => !columnLists.has(name) && !BLOCK_WORDS.has(name));
  return { tables: [...tables], anything: isUnsure || isUnknown };
}

const CHANGES: ReadonlySet<string> = new Set(["insert", "replace", "update", "delete"]);
/** Keywords of a body that a parenthesis may follow. */
const BLOCK_WORDS: ReadonlySet<string> = new Set([
  ...["elseif", "while", "until", "return", "begin", "do", "loop", "repeat"],
]);

/** The table after INTO, UPDATE or DELETE FROM. */
function targetAt(tokens: readonly Token[], start: number): string | undefined {
  const token = tokens[start];
  const isUpdate = isWord(token, "update") && !isWord(tokens[start - 1], "do");
  const isDelete = isWord(token, "from") && isWord(tokens[start - 1], "delete");
  if (!isWord(token, "into") && !isUpdate && !isDelete) return undefined;
  let at = start + 1;
  if (isWord(tokens[at], "or")) at += 2;
  if (isWord(tokens[at], "only")) at++;
  while (isMark(tokens[at + 1], ".")) at += 2;
  const name = tokens[at];
  return name?.kind === "word" || name?.kind === "name" ? name.text : undefined;
}

function isUnknownCall(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at] as Token;
  if (!isMark(tokens[at + 1], "(") || (token.kind !== "word" && token.kind !== "name")) return false;
  if (token.kind === "word" && NOT_CALLS.has(token.text)) return false;
  let first = at;
  while (isMark(tokens[first - 1], ".")) first -= 2;
  // The column list of a table that is written.
  if (isWord(tokens[first - 1], "into")) return false;
  const schema = first < at ? tokens[at - 2]?.text : undefined;
  return token.kind === "name" || callKind(token.text, schema, "postgres") === "unknown";
}
