// What the calls, keywords and literals in a statement imply, whatever kind of statement it is.
import { isVolatileMysqlWord, mysqlCallKind } from "./mysql-functions.ts";
import type { PointRead } from "./point-read.ts";
import { type Call, type CallKind, callKind, isVolatileWord, mayLiteralDenoteNow } from "./sql-functions.ts";
import { isMark, isWord, type SqlDialect, type Token } from "./sql-tokens.ts";

interface Write extends Calling {
  readonly kind: "write";
  readonly tables: readonly string[];
  readonly effects: Effects;
}

/** `settled()` decides what the calls add to a statement. */
interface Calling {
  readonly calls?: readonly Call[];
  /** What else keeps it from being a plain read, in words, if PostgreSQL's own parser has decided. */
  readonly reason?: string | undefined;
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
  /** It may commit the transaction that it is in, even if it fails. */
  readonly commits?: boolean;
}

export const NO_EFFECTS: Effects = { anything: false, locks: undefined, settings: false };
export const HARMLESS = { kind: "harmless", effects: NO_EFFECTS } as const satisfies Statement;
export const ANYTHING: Write = {
  kind: "write",
  tables: [],
  effects: { anything: true, locks: "transaction", settings: true },
};

export interface Analysis {
  /** Nothing but its calls can keep a read from being cached. */
  readonly isPlain: boolean;
  /** Without those of its calls. */
  readonly effects: Effects;
  readonly calls: Calling;
}

export function analyse(tokens: readonly Token[], dialect: SqlDialect): Analysis {
  const kinds = new Set<CallKind>();
  const calls = new Map<string, Call>();
  tokens.forEach((_, at) => {
    if (dialect === "mysql" ? isVolatileInMysql(tokens, at) : isVolatile(tokens, at, dialect)) {
      kinds.add("volatile");
    }
    if (isLock(tokens, at)) kinds.add("lock");
    const call = callAt(tokens, at, dialect);
    if (call === undefined) return;
    const { name, kind } = call;
    // Built-in functions of MySQL are what they seem to be, so that the catalogue need not be asked about them.
    const isAsked = dialect === "mysql" ? kind === "unknown" : kind !== "none";
    if (isAsked && (kind === "plain" || kind === "volatile" || kind === "unknown")) {
      if (calls.get(name)?.kind !== "unknown") calls.set(name, { name, kind });
    } else if (kind !== "none" && kind !== "plain") kinds.add(kind);
  });
  const locks = kinds.has("hold") ? "session" : kinds.has("lock") ? "transaction" : undefined;
  return {
    isPlain: kinds.size === 0,
    effects: { anything: false, locks, settings: kinds.has("setting") },
    calls: calls.size === 0 ? {} : { calls: [...calls.values()] },
  };
}

/** In words, how a call keeps a statement from being a plain read; undefined: it does not. */
export function offenceOf({
  name,
  kind,
}: Omit<Call, "kind"> & { readonly kind: CallKind }): string | undefined {
  if (kind === "none" || kind === "plain") return undefined;
  return kind === "unknown"
    ? `it calls ${name}(), which is not known`
    : `it calls ${name}(), whose result changes`;
}

/** In words, what keeps a statement from being a plain read. */
export function offences(tokens: readonly Token[], dialect: SqlDialect): readonly string[] {
  return tokens.flatMap(({ text }, at) => {
    const isNow = dialect === "mysql" ? isVolatileInMysql(tokens, at) : isVolatile(tokens, at, dialect);
    if (isNow) return `"${text}" is not the same for every reader`;
    if (isLock(tokens, at)) return "it locks rows";
    const call = callAt(tokens, at, dialect);
    return (call && offenceOf(call)) ?? [];
  });
}

function isVolatile(tokens: readonly Token[], at: number, dialect: SqlDialect): boolean {
  const { kind, text } = tokens[at] as Token;
  if (kind === "text") return mayLiteralDenoteNow(text);
  return kind === "word" && !isMark(tokens[at - 1], ".") && isVolatileWord(text, dialect);
}

function isVolatileInMysql(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at] as Token;
  // A variable, which may be assigned here as well.
  if (isMark(token, "@")) return true;
  if (token.kind !== "word" || isMark(tokens[at - 1], ".")) return false;
  // NEXT VALUE FOR a sequence.
  return isVolatileMysqlWord(token.text) || (token.text === "value" && isWord(tokens[at + 1], "for"));
}

/** `FOR UPDATE` and the like, `LOCK IN SHARE MODE`. */
function isLock(tokens: readonly Token[], at: number): boolean {
  const next = tokens[at + 1];
  if (isWord(tokens[at], "lock")) return isWord(next, "in");
  return isWord(tokens[at], "for") && ["update", "share", "no", "key"].some((word) => isWord(next, word));
}

function callAt(
  tokens: readonly Token[],
  at: number,
  dialect: SqlDialect,
): { readonly name: string; readonly kind: CallKind } | undefined {
  const { kind, text: name } = tokens[at] as Token;
  if (!isMark(tokens[at + 1], "(")) return undefined;
  // MySQL may take "a" for a name.
  if (kind === "text" && dialect === "mysql") return { name, kind: "unknown" };
  if ((kind !== "word" && kind !== "name") || isNoCall(tokens, at)) return undefined;
  const schema = isMark(tokens[at - 1], ".") ? (tokens[at - 2]?.text ?? "") : undefined;
  if (kind === "name") return { name, kind: "unknown" };
  return dialect === "mysql"
    ? { name, kind: mysqlCallKind(name, schema, !isMark(tokens[at + 2], ")")) }
    : { name, kind: callKind(name, schema, dialect) };
}

/** Whether a name in front of a parenthesis is certainly not that of a function. */
function isNoCall(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  // The name of a common table expression with its column list.
  if (isWord(before, "with") || isWord(before, "recursive")) return true;
  if (isMark(before, ",") && isCommonTable(tokens, at)) return true;
  // An alias with its column list, or a type.
  if (isWord(before, "as")) return true;
  if (isMark(before, ")")) return !endsDistinctOn(tokens, at - 1);
  if (isMark(before, ":") && isMark(tokens[at - 2], ":")) return true;
  if (isWord(before, "tablesample")) return true;
  const { kind, text } = tokens[at] as Token;
  if (kind !== "word") return false;
  // AS NOT MATERIALIZED.
  if (text === "materialized") return isWord(before, "not") && isWord(tokens[at - 2], "as");
  // At the start it is what follows UPDATE and a table.
  if (text === "set" && before === undefined) return true;
  return text === "symmetric" || (before?.kind === "word" && PAIRS.has(`${before.text} ${text}`));
}

/** Whether a parenthesis closes the list of DISTINCT ON, behind which the selected expressions begin. */
function endsDistinctOn(tokens: readonly Token[], end: number): boolean {
  let depth = 0;
  for (let at = end; at >= 0; at--) {
    if (isMark(tokens[at], ")")) depth++;
    else if (isMark(tokens[at], "(") && --depth === 0)
      return isWord(tokens[at - 1], "on") && isWord(tokens[at - 2], "distinct");
  }
  return false;
}

/** Words that a parenthesis follows. */
const PAIRS: ReadonlySet<string> = new Set([
  ...["fetch first", "fetch next", "group by", "order by", "partition by", "on conflict", "grouping sets"],
  ...["update set", "is json"],
]);

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
