// What a text of SQL does, as far as that can be proven from the text: when unsure, it reads nothing and writes everything.
import { tablesRead } from "./query-tables.ts";
import { type CallKind, callKind, isVolatileWord, meansTheMoment } from "./sql-functions.ts";
import { isMark, isWord, type SqlDialect, statementsOf, type Token, tokensOf } from "./sql-tokens.ts";

type Write = { readonly kind: "write"; readonly tables: readonly string[]; readonly effects: Effects };

export type Statement =
  /** Its result is decided by its text, its values, the rows of these tables and the settings of the session. */
  | { readonly kind: "read"; readonly tables: readonly string[] }
  | Write
  /** Not cached, and no table is changed. */
  | { readonly kind: "harmless"; readonly effects: Effects }
  /** `isPlain`: at an isolation level that the settings already tell. */
  | { readonly kind: "begin"; readonly isPlain: boolean }
  | { readonly kind: "commit" }
  | { readonly kind: "rollback" }
  | { readonly kind: "savepoint" | "rollback to" | "release"; readonly name: string };

/** What a statement may do besides reading and writing the tables it names. */
export interface Effects {
  /** It may have written tables that it does not name. */
  readonly anything: boolean;
  /** Until when whoever ran it holds a lock, and may have learnt by it more than others were told. */
  readonly locks: "transaction" | "session" | undefined;
  /** The session's settings may be others now. */
  readonly settings: boolean;
}

const NO_EFFECTS: Effects = { anything: false, locks: undefined, settings: false };
const HARMLESS: Statement = { kind: "harmless", effects: NO_EFFECTS };
const ANYTHING: Write = {
  kind: "write",
  tables: [],
  effects: { anything: true, locks: "transaction", settings: true },
};

const LONGEST_REMEMBERED = 10_000;
const MOST_REMEMBERED = 1_000;
const remembered = new Map<string, readonly Statement[]>();

/** The statements of a text, in order. */
export function statementsIn(sql: string | undefined, dialect: SqlDialect): readonly Statement[] {
  if (sql === undefined) return [ANYTHING];
  const key = `${dialect} ${sql}`;
  let statements = remembered.get(key);
  if (statements !== undefined) return statements;
  const tokens = tokensOf(sql, dialect);
  statements =
    tokens === undefined ? [ANYTHING] : statementsOf(tokens).map((statement) => classify(statement, dialect));
  if (key.length <= LONGEST_REMEMBERED) {
    if (remembered.size >= MOST_REMEMBERED) remembered.delete(remembered.keys().next().value ?? "");
    remembered.set(key, statements);
  }
  return statements;
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
      // A prepared transaction has ended here, and is not committed: COMMIT PREPARED may have written anything.
      return isWord(second, "transaction") ? { kind: "rollback" } : HARMLESS;
    case "copy":
      return copy(tokens);
    case "truncate":
      return { ...ANYTHING, tables: namesIn(tokens.slice(1)) };
    default:
      return ANYTHING;
  }
}

/** SELECT, or WITH and anything. */
function query(tokens: readonly Token[], dialect: SqlDialect): Statement {
  if (changesWithin(tokens) || tokens.some((token) => isWord(token, "into"))) {
    return { ...ANYTHING, tables: changedWithin(tokens) };
  }
  const { isPlain, effects } = judge(tokens, dialect);
  if (effects.anything) return { kind: "write", tables: [], effects };
  const tables = isPlain ? tablesRead(tokens) : undefined;
  // Without a table there is no tag: `SELECT 1` is there to ask the database whether it is alive.
  return tables === undefined || tables.length === 0
    ? { kind: "harmless", effects }
    : { kind: "read", tables };
}

/** INSERT, UPDATE, DELETE, MERGE. */
function change(tokens: readonly Token[], dialect: SqlDialect): Statement {
  const { at, name } = changedTable(tokens);
  if (name === undefined) return ANYTHING;
  // The table's own column list looks like a call.
  const { effects } = judge(tokens.slice(at + 1), dialect);
  const hasInner = tokens.some((token) => isWord(token, "with"));
  return { kind: "write", tables: [name], effects: { ...effects, anything: effects.anything || hasInner } };
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
  const goesBack = tokens.some((token) => isWord(token, "to"));
  return goesBack ? { kind: "rollback to", name: savepointName(tokens.at(-1)) } : { kind: "rollback" };
}

/** For SQLite case never counts. Where it does, the later one of two is taken, which has written no less. */
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
  // SQLite, where every transaction is one of a snapshot.
  ...["deferred", "immediate", "exclusive"],
]);

function isPlainBegin(options: readonly Token[]): boolean {
  return options.every(({ text }) => PLAIN_BEGIN.has(text));
}

/** The names after INTO, UPDATE and FROM: among them are those that a WITH clause changes. */
function changedWithin(tokens: readonly Token[]): readonly string[] {
  return tokens.flatMap((token, at) =>
    ["into", "update", "from"].some((word) => isWord(token, word)) ? (nameAfter(tokens, at) ?? []) : [],
  );
}

/** The table named right after the token at `start`. */
function nameAfter(tokens: readonly Token[], start: number): string | undefined {
  return changedTable([{ kind: "word", text: "update" }, ...tokens.slice(start + 1, start + 8)]).name;
}

/** Whether something in it is an INSERT, UPDATE, DELETE or MERGE of its own; those of FOR UPDATE are not. */
function changesWithin(tokens: readonly Token[]): boolean {
  return tokens.some((token, at) => {
    if (token.kind !== "word" || !/^(insert|update|delete|merge)$/.test(token.text)) return false;
    return !(token.text === "update" && (isWord(tokens[at - 1], "for") || isWord(tokens[at - 1], "key")));
  });
}

/** Every name that may be a table's. */
function namesIn(tokens: readonly Token[]): readonly string[] {
  return [
    ...new Set(tokens.filter(({ kind }) => kind === "word" || kind === "name").map(({ text }) => text)),
  ];
}

/** What the calls, words and literals of a statement mean for it. */
function judge(tokens: readonly Token[], dialect: SqlDialect): { isPlain: boolean; effects: Effects } {
  const calls = new Set<CallKind>();
  tokens.forEach((token, at) => {
    if (token.kind === "text" && meansTheMoment(token.text)) calls.add("volatile");
    if (token.kind === "word" && !isMark(tokens[at - 1], ".") && isVolatileWord(token.text, dialect)) {
      calls.add("volatile");
    }
    if (
      isWord(token, "for") &&
      ["update", "share", "no", "key"].some((word) => isWord(tokens[at + 1], word))
    ) {
      calls.add("lock");
    }
    if ((token.kind !== "word" && token.kind !== "name") || !isMark(tokens[at + 1], "(")) return;
    // The name of a common table, with its columns.
    if (isWord(tokens[at - 1], "with") || isWord(tokens[at - 1], "recursive")) return;
    const schema = isMark(tokens[at - 1], ".") ? (tokens[at - 2]?.text ?? "") : undefined;
    calls.add(token.kind === "name" ? "unknown" : callKind(token.text, schema, dialect));
  });
  const anything = calls.has("unknown");
  const isPlain = [...calls].every((kind) => kind === "none" || kind === "plain");
  const locks = calls.has("hold") ? "session" : anything || calls.has("lock") ? "transaction" : undefined;
  return { isPlain, effects: { anything, locks, settings: anything || calls.has("setting") } };
}
