// Classifies SQL text as far as the text proves. An uncertain statement is never cached and counts as writing every table.
import { ANYTHING, analyse, HARMLESS, NO_EFFECTS, type Statement } from "./analysis.ts";
import { anythingInMysql, changedBy, classifyMysql } from "./mysql-statement.ts";
import { changedTable, nameAfter, namesIn } from "./names.ts";
import { pointRead } from "./point-read.ts";
import { postgresParser } from "./postgres-parser.ts";
import { tablesRead } from "./query-tables.ts";
import { isMark, isWord, type SqlDialect, statementsOf, type Token, tokensOf } from "./sql-tokens.ts";

export { type Effects, NO_EFFECTS, type Statement } from "./analysis.ts";

const LONGEST_CACHED = 10_000;
const MOST_CACHED = 1_000;
const classified = new Map<string, readonly Statement[]>();
let generation = postgresParser.generation;

/** The statements of a text, in order. */
export function statementsIn(sql: string | undefined, dialect: SqlDialect): readonly Statement[] {
  if (sql === undefined) return [dialect === "mysql" ? anythingInMysql() : ANYTHING];
  if (generation !== postgresParser.generation) classified.clear();
  generation = postgresParser.generation;
  const key = `${dialect} ${sql}`;
  let statements = classified.get(key);
  if (statements !== undefined) return statements;
  statements = tokenized(sql, dialect);
  if (dialect === "postgres") statements = withParser(sql, statements);
  if (key.length <= LONGEST_CACHED) {
    if (classified.size >= MOST_CACHED) classified.delete(classified.keys().next().value ?? "");
    classified.set(key, statements);
  }
  return statements;
}

/** By the tokens of the text alone. */
export function tokenized(sql: string, dialect: SqlDialect): readonly Statement[] {
  const tokens = tokensOf(sql, dialect);
  return tokens === undefined ? notUnderstood(sql, dialect) : understood(tokens, dialect);
}

const REFUSED: Statement = { ...HARMLESS, reason: "PostgreSQL's parser does not accept it" };

/** What PostgreSQL's own parser says takes precedence over the tokens. */
function withParser(sql: string, statements: readonly Statement[]): readonly Statement[] {
  const better = postgresParser.parsed(sql);
  if (better === undefined) return statements;
  // The syntax of another version or of a server like it: a write is still one.
  if (better === "invalid") return statements.map((each) => (each.kind === "read" ? REFUSED : each));
  const [only] = statements;
  const point = only?.kind === "read" ? only.point : undefined;
  return better.map((each) => (each.kind === "read" && each.tables.length === 1 ? { ...each, point } : each));
}

function understood(tokens: readonly Token[], dialect: SqlDialect): readonly Statement[] {
  const statements = statementsOf(tokens);
  return dialect === "mysql"
    ? classifyMysql(statements)
    : statements.map((statement) => classify(statement, dialect));
}

/** A text that is not read to its end may do anything, and writes the table that it begins with. */
function notUnderstood(sql: string, dialect: SqlDialect): readonly Statement[] {
  const start = tokensOf(/^[^('$]{0,300}/.exec(sql)?.[0] ?? "", dialect) ?? [];
  if (dialect === "mysql") return [anythingInMysql(changedBy(start).tables)];
  return [{ ...ANYTHING, tables: [changedTable(start).name ?? []].flat() }];
}

function classify(tokens: readonly Token[], dialect: SqlDialect): Statement {
  const [first, second] = tokens;
  if (isMark(first, "(")) return query(tokens, dialect);
  if (first?.kind !== "word") return ANYTHING;
  switch (first.text) {
    case "select":
    case "with":
    case "values":
    case "table":
      return query(tokens, dialect);
    case "insert":
    case "replace":
    case "update":
    case "delete":
    case "merge":
      return change(tokens, dialect);
    case "begin":
    case "start":
      return { kind: "begin", isPlain: isPlainBegin(tokens.slice(1)) };
    case "commit":
    case "end":
      return isWord(second, "prepared") ? ANYTHING : { kind: "commit" };
    case "rollback":
    case "abort":
      return rollback(tokens);
    case "savepoint":
      return { kind: "savepoint", name: savepointName(second) };
    case "release":
      return { kind: "release", name: savepointName(tokens.at(-1)) };
    case "set":
    case "reset":
    case "discard":
    case "pragma":
      return { kind: "harmless", effects: { ...NO_EFFECTS, settings: true } };
    case "lock":
      return { kind: "harmless", effects: { ...NO_EFFECTS, locks: "transaction" } };
    case "explain":
      return tokens.some((token) => /^analy[sz]e$/.test(token.text)) ? ANYTHING : HARMLESS;
    case "show":
    case "listen":
    case "unlisten":
    case "notify":
    case "fetch":
    case "move":
    case "close":
    case "deallocate":
      return HARMLESS;
    case "prepare":
      // PREPARE TRANSACTION ends it here without committing; COMMIT PREPARED counts as writing anything.
      return isWord(second, "transaction") ? { kind: "rollback" } : HARMLESS;
    case "copy":
      return copy(tokens);
    case "truncate":
    case "refresh":
      return { ...ANYTHING, tables: namesIn(tokens.slice(1)) };
    default:
      return ANYTHING;
  }
}

/** SELECT, or WITH followed by any statement. */
function query(tokens: readonly Token[], dialect: SqlDialect): Statement {
  if (changesWithin(tokens) || tokens.some((token) => isWord(token, "into"))) {
    return { ...ANYTHING, tables: changedWithin(tokens) };
  }
  const { isPlain, effects, calls } = analyse(tokens, dialect);
  const tables = isPlain ? tablesRead(tokens, dialect) : undefined;
  // Without a table there is no tag, and `SELECT 1` is a health check.
  return tables === undefined || tables.length === 0
    ? { kind: "harmless", effects, ...calls }
    : { kind: "read", tables, ...calls, ...(tables.length === 1 && { point: pointRead(tokens, dialect) }) };
}

/** INSERT, REPLACE, UPDATE, DELETE or MERGE. */
function change(tokens: readonly Token[], dialect: SqlDialect): Statement {
  const { at, name } = changedTable(tokens);
  if (name === undefined) return ANYTHING;
  // The column list of the table looks like a call.
  const { effects, calls } = analyse(tokens.slice(at + 1), dialect);
  const hasInner = tokens.some((token) => isWord(token, "with"));
  return { kind: "write", tables: [name], effects: { ...effects, anything: hasInner }, ...calls };
}

function copy(tokens: readonly Token[]): Statement {
  const name = nameAfter(tokens, 0);
  if (name === undefined) return ANYTHING;
  const from = tokens.findIndex((token) => isWord(token, "from"));
  if (from < 0) return HARMLESS;
  // Its WHERE may call functions.
  const { effects, calls } = analyse(tokens.slice(from), "postgres");
  return { kind: "write", tables: [name], effects, ...calls };
}

function rollback(tokens: readonly Token[]): Statement {
  if (isWord(tokens[1], "prepared")) return HARMLESS;
  const isPartial = tokens.some((token) => isWord(token, "to"));
  return isPartial ? { kind: "rollback to", name: savepointName(tokens.at(-1)) } : { kind: "rollback" };
}

/** SQLite ignores case. Where case matters, the later of two savepoints is taken, which has written no less. */
function savepointName(token: Token | undefined): string {
  return token?.text.toLowerCase() ?? "";
}

const PLAIN_BEGIN: ReadonlySet<string> = new Set([
  ...[
    "work",
    "transaction",
    "isolation",
    "level",
    "read",
    "committed",
    "write",
    "only",
    "not",
    "deferrable",
    ",",
  ],
  // SQLite, where every transaction reads a snapshot.
  ...["deferred", "immediate", "exclusive"],
]);

function isPlainBegin(options: readonly Token[]): boolean {
  return options.every(({ text }) => PLAIN_BEGIN.has(text));
}

/** The names after INTO, UPDATE and FROM, which include the tables that a WITH clause changes. */
function changedWithin(tokens: readonly Token[]): readonly string[] {
  return tokens.flatMap((token, at) =>
    ["into", "update", "from"].some((word) => isWord(token, word)) ? (nameAfter(tokens, at) ?? []) : [],
  );
}

/** Whether it contains an INSERT, UPDATE, DELETE or MERGE; the UPDATE of FOR UPDATE does not count. */
function changesWithin(tokens: readonly Token[]): boolean {
  return tokens.some((token, at) => {
    if (token.kind !== "word" || !/^(insert|update|delete|merge)$/.test(token.text)) return false;
    return !(token.text === "update" && (isWord(tokens[at - 1], "for") || isWord(tokens[at - 1], "key")));
  });
}
