// Classifies SQL text as far as the text proves. An uncertain statement is never cached and counts as writing every table.
import { type PointRead, pointRead } from "./point-read.ts";
import { tablesRead } from "./query-tables.ts";
import { type Call, type CallKind, callKind, isVolatileWord, mayLiteralDenoteNow } from "./sql-functions.ts";
import { isMark, isWord, type SqlDialect, statementsOf, type Token, tokensOf } from "./sql-tokens.ts";

interface Write extends Calling {
  readonly kind: "write";
  readonly tables: readonly string[];
  readonly effects: Effects;
}

/** `settled()` decides what the calls add to a statement. */
interface Calling {
  readonly calls?: readonly Call[];
}

export type Statement =
  /** Its result depends only on its text, its values, the rows of these tables, its calls and the session settings. */
  | ({
      readonly kind: "read";
      readonly tables: readonly string[];
      /** Present if it selects by equality from one table. */
      readonly point?: PointRead | undefined;
    } & Calling)
  | Write
  /** Not cacheable, and changes no table. */
  | ({ readonly kind: "harmless"; readonly effects: Effects } & Calling)
  /** `isPlain`: at an isolation level that the settings already report. */
  | { readonly kind: "begin"; readonly isPlain: boolean }
  | { readonly kind: "commit" }
  | { readonly kind: "rollback" }
  | { readonly kind: "savepoint" | "rollback to" | "release"; readonly name: string };

/** What a statement may do besides reading and writing the tables it names. */
export interface Effects {
  /** It may write tables that it does not name. */
  readonly anything: boolean;
  /** How long its session holds a lock, behind which it may see more than the cache. */
  readonly locks: "transaction" | "session" | undefined;
  /** It may change the session's settings. */
  readonly settings: boolean;
}

export const NO_EFFECTS: Effects = { anything: false, locks: undefined, settings: false };
const HARMLESS: Statement = { kind: "harmless", effects: NO_EFFECTS };
const ANYTHING: Write = {
  kind: "write",
  tables: [],
  effects: { anything: true, locks: "transaction", settings: true },
};

const LONGEST_CACHED = 10_000;
const MOST_CACHED = 1_000;
const classified = new Map<string, readonly Statement[]>();

/** The statements of a text, in order. */
export function statementsIn(sql: string | undefined, dialect: SqlDialect): readonly Statement[] {
  if (sql === undefined) return [ANYTHING];
  const key = `${dialect} ${sql}`;
  let statements = classified.get(key);
  if (statements !== undefined) return statements;
  const tokens = tokensOf(sql, dialect);
  statements =
    tokens === undefined
      ? [{ ...ANYTHING, tables: [firstTable(sql, dialect)].flat() }]
      : statementsOf(tokens).map((statement) => classify(statement, dialect));
  if (key.length <= LONGEST_CACHED) {
    if (classified.size >= MOST_CACHED) classified.delete(classified.keys().next().value ?? "");
    classified.set(key, statements);
  }
  return statements;
}

/** The table that a text writes which is not read to its end. */
function firstTable(sql: string, dialect: SqlDialect): string | readonly string[] {
  const start = tokensOf(/^[^('$]{0,300}/.exec(sql)?.[0] ?? "", dialect) ?? [];
  return changedTable(start).name ?? [];
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
  const tables = isPlain ? tablesRead(tokens) : undefined;
  // Without a table there is no tag, and `SELECT 1` is a health check.
  return tables === undefined || tables.length === 0
    ? { kind: "harmless", effects, ...calls }
    : { kind: "read", tables, ...calls, ...(tables.length === 1 && { point: pointRead(tokens) }) };
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

function changedTable(tokens: readonly Token[]): { readonly at: number; readonly name: string | undefined } {
  const first = tokens[0]?.text;
  let at = 1;
  // SQLite: UPDATE OR IGNORE, INSERT OR REPLACE INTO.
  if (isWord(tokens[at], "or")) at += 2;
  const between = first === "update" ? undefined : first === "delete" ? "from" : "into";
  if (between !== undefined && !isWord(tokens[at++], between)) return { at, name: undefined };
  if (isWord(tokens[at], "only")) at++;
  while (isMark(tokens[at + 1], ".")) at += 2;
  const name = tokens[at];
  const isName = name?.kind === "word" || name?.kind === "name";
  return { at, name: isName ? name.text : undefined };
}

function copy(tokens: readonly Token[]): Statement {
  const name = nameAfter(tokens, 0);
  if (name === undefined) return ANYTHING;
  const isWrite = tokens.some((token) => isWord(token, "from"));
  return isWrite ? { kind: "write", tables: [name], effects: NO_EFFECTS } : HARMLESS;
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

/** The table named right after the token at `start`. */
function nameAfter(tokens: readonly Token[], start: number): string | undefined {
  return changedTable([{ kind: "word", text: "update" }, ...tokens.slice(start + 1, start + 8)]).name;
}

/** Whether it contains an INSERT, UPDATE, DELETE or MERGE; the UPDATE of FOR UPDATE does not count. */
function changesWithin(tokens: readonly Token[]): boolean {
  return tokens.some((token, at) => {
    if (token.kind !== "word" || !/^(insert|update|delete|merge)$/.test(token.text)) return false;
    return !(token.text === "update" && (isWord(tokens[at - 1], "for") || isWord(tokens[at - 1], "key")));
  });
}

/** Every name that may be a table. */
function namesIn(tokens: readonly Token[]): readonly string[] {
  return [
    ...new Set(tokens.filter(({ kind }) => kind === "word" || kind === "name").map(({ text }) => text)),
  ];
}

/** Whether a name in front of a parenthesis is certainly not that of a function. */
function isNoCall(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  // The name of a common table expression with its column list.
  if (isWord(before, "with") || isWord(before, "recursive")) return true;
  if (isMark(before, ",") && isCommonTable(tokens, at)) return true;
  // An alias with its column list, or a type.
  if (isWord(before, "as") || isMark(before, ")")) return true;
  if (isWord(before, "tablesample")) return true;
  const { text } = tokens[at] as Token;
  return isWord(before, "fetch") ? text === "first" || text === "next" : text === "symmetric";
}

const QUERY_WORDS = ["select", "with", "values", "insert", "update", "delete", "merge", "table"];

/** `name (columns) AS [NOT] [MATERIALIZED] (query`. */
function isCommonTable(tokens: readonly Token[], start: number): boolean {
  let at = start + 2;
  while (at < tokens.length && !isMark(tokens[at], ")")) {
    const token = tokens[at++];
    if (token?.kind !== "word" && token?.kind !== "name" && !isMark(token, ",")) return false;
  }
  if (!isWord(tokens[++at], "as")) return false;
  at++;
  while (isWord(tokens[at], "not") || isWord(tokens[at], "materialized")) at++;
  const first = tokens[at + 1];
  return isMark(tokens[at], "(") && (isMark(first, "(") || QUERY_WORDS.some((word) => isWord(first, word)));
}

interface Analysis {
  /** Nothing but its calls can keep a read from being cached. */
  readonly isPlain: boolean;
  /** Without those of its calls. */
  readonly effects: Effects;
  readonly calls: Calling;
}

/** What the calls, keywords and literals in a statement imply. */
function analyse(tokens: readonly Token[], dialect: SqlDialect): Analysis {
  const kinds = new Set<CallKind>();
  const calls = new Map<string, Call>();
  tokens.forEach((token, at) => {
    if (token.kind === "text" && mayLiteralDenoteNow(token.text)) kinds.add("volatile");
    if (token.kind === "word" && !isMark(tokens[at - 1], ".") && isVolatileWord(token.text, dialect)) {
      kinds.add("volatile");
    }
    if (
      isWord(token, "for") &&
      ["update", "share", "no", "key"].some((word) => isWord(tokens[at + 1], word))
    ) {
      kinds.add("lock");
    }
    if ((token.kind !== "word" && token.kind !== "name") || !isMark(tokens[at + 1], "(")) return;
    if (isNoCall(tokens, at)) return;
    const schema = isMark(tokens[at - 1], ".") ? (tokens[at - 2]?.text ?? "") : undefined;
    const kind = token.kind === "name" ? "unknown" : callKind(token.text, schema, dialect);
    if (kind === "plain" || kind === "volatile" || kind === "unknown") {
      const isKnown = calls.get(token.text)?.kind === "unknown";
      if (!isKnown) calls.set(token.text, { name: token.text, kind });
    } else if (kind !== "none") kinds.add(kind);
  });
  const locks = kinds.has("hold") ? "session" : kinds.has("lock") ? "transaction" : undefined;
  return {
    isPlain: kinds.size === 0,
    effects: { anything: false, locks, settings: kinds.has("setting") },
    calls: calls.size === 0 ? {} : { calls: [...calls.values()] },
  };
}
