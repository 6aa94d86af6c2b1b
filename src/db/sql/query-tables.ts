// Which tables a SELECT reads: every name in a FROM clause, at any depth, that its own WITH clause does not define.
import { isMark, isWord, type SqlDialect, type Token } from "./sql-tokens.ts";

/** A parenthesised part of a query, or the whole query. */
interface Level {
  /** `query`: may have a FROM clause. `tables`: parentheses inside one. `list`: anything else, such as call arguments. */
  kind: "query" | "tables" | "list";
  /** Inside the FROM clause. */
  inFrom: boolean;
  /** The next word is a table. */
  expectsTable: boolean;
  /** The token before the parenthesis. */
  readonly opener: string;
}

/** Words that end a FROM clause: reserved words that something must follow. */
const AFTER_FROM: ReadonlySet<string> = new Set([
  ...["where", "group", "having", "window", "order", "limit", "offset", "fetch", "for", "union"],
  ...["intersect", "except", "select"],
]);
/** Functions with FROM among their arguments. */
const CALLS_WITH_FROM: ReadonlySet<string> = new Set([
  ...["extract", "substring", "substr", "mid", "trim", "overlay", "position"],
]);
/** Words after which the tables are uncertain, or the rows a sample. */
const UNSURE_WORDS: ReadonlySet<string> = new Set(["tablesample", "rows", "table", "system_time"]);
/** Databases of the server itself, whose tables change in other ways than by writes. */
const SYSTEM_SCHEMAS: ReadonlySet<string> = new Set([
  ...["mysql", "sys", "information_schema", "performance_schema"],
]);

interface CommonTable {
  readonly name: string;
  /** The index of the token that closes its query. */
  readonly end: number;
}

interface Reference {
  readonly name: string;
  readonly schema: string | undefined;
  readonly at: number;
}

/** Table names as written, without schema. undefined: the list may be incomplete. */
export function tablesRead(tokens: readonly Token[], dialect: SqlDialect): readonly string[] | undefined {
  const common = commonTables(tokens);
  if (common === undefined) return undefined;
  const references = tableReferences(tokens, common.length === 0 ? 0 : 1, dialect);
  if (references === undefined) return undefined;
  const isOfServer = ({ schema = "" }: Reference): boolean => SYSTEM_SCHEMAS.has(schema.toLowerCase());
  if (dialect === "mysql" && references.some(isOfServer)) return undefined;
  const isRecursive = isWord(tokens[1], "recursive");
  const own = ({ name, schema, at }: Reference): boolean =>
    schema === undefined && common.some((table) => table.name === name && (isRecursive || at > table.end));
  return [...new Set(references.filter((reference) => !own(reference)).map(({ name }) => name))];
}

function tableReferences(
  tokens: readonly Token[],
  withs: number,
  dialect: SqlDialect,
): readonly Reference[] | undefined {
  const references: Reference[] = [];
  const levels: Level[] = [{ kind: "query", inFrom: false, expectsTable: false, opener: "" }];
  let withsLeft = withs;
  for (let at = 0; at < tokens.length; at++) {
    const { kind, text } = tokens[at]!;
    const level = levels.at(-1);
    if (level === undefined) return undefined;
    if (kind === "mark") {
      if (text === "(") levels.push(opened(level, tokens, at));
      else if (text === ")") levels.pop();
      else if (text === "," && level.inFrom) level.expectsTable = true;
      continue;
    }
    if (kind === "word" && !isNamePart(tokens, at)) {
      if (UNSURE_WORDS.has(text)) return undefined;
      // SQLite: IN followed by a table name.
      if (text === "in" && dialect === "sqlite" && !isMark(tokens[at + 1], "(")) return undefined;
      // MySQL: FORCE INDEX FOR ORDER BY.
      if (text === "for" && isIndexWord(tokens[at - 1])) return undefined;
      // Names in an inner WITH would hide tables of the same name.
      if (text === "with" && !isOptionWith(tokens, at) && --withsLeft < 0) return undefined;
      if (text === "from") {
        const isClause = fromBegins(level, tokens, at);
        if (isClause === undefined) return undefined;
        if (isClause) Object.assign(level, { inFrom: true, expectsTable: true });
        continue;
      }
      if (text === "join" || (text === "straight_join" && level.inFrom)) {
        if (!level.inFrom) return undefined;
        level.expectsTable = true;
        continue;
      }
      if (AFTER_FROM.has(text)) {
        if (level.expectsTable || (level.inFrom && endsHere(tokens[at + 1]))) return undefined;
        level.inFrom = false;
        continue;
      }
      if (level.expectsTable && (text === "only" || text === "lateral")) continue;
    }
    if (!level.expectsTable) continue;
    level.expectsTable = false;
    if (kind !== "word" && kind !== "name") return undefined;
    const end = endOfName(tokens, at);
    // A function call in place of a table: statement.ts classifies calls.
    if (!isMark(tokens[end + 1], "(")) {
      references.push({ name: tokens[end]!.text, schema: tokens[end > at ? end - 2 : -1]?.text, at });
    }
    at = end;
  }
  return levels.length === 1 ? references : undefined;
}

function opened(outer: Level, tokens: readonly Token[], at: number): Level {
  const opener = tokens[at - 1]?.text ?? "";
  if (["select", "with", "values"].some((word) => isWord(tokens[at + 1], word))) {
    outer.expectsTable = false;
    return { kind: "query", inFrom: false, expectsTable: false, opener };
  }
  if (outer.expectsTable) {
    outer.expectsTable = false;
    return { kind: "tables", inFrom: true, expectsTable: true, opener };
  }
  // A query in further parentheses is recognised when those open.
  return { kind: "list", inFrom: false, expectsTable: false, opener };
}

/** Whether FROM begins a clause here. undefined: uncertain. */
function fromBegins(level: Level, tokens: readonly Token[], at: number): boolean | undefined {
  const earlier = tokens[at - 2];
  if (isWord(tokens[at - 1], "distinct") && (isWord(earlier, "is") || isWord(earlier, "not"))) return false;
  if (level.kind === "query") return level.inFrom ? undefined : true;
  return CALLS_WITH_FROM.has(level.opener) ? false : undefined;
}

/** Whether a word must be a name here, even if it is a keyword elsewhere. */
function isNamePart(tokens: readonly Token[], at: number): boolean {
  return isMark(tokens[at - 1], ".") || isWord(tokens[at - 1], "as");
}

/** Whether nothing follows that a keyword could apply to. */
function endsHere(next: Token | undefined): boolean {
  return next === undefined || isMark(next, ",") || isMark(next, ")") || isWord(next, "join");
}

/** `WITH ORDINALITY`, `WITH TIME ZONE`, `WITH TIES`, `WITH ROLLUP`, `WITH QUERY EXPANSION`. */
function isOptionWith(tokens: readonly Token[], at: number): boolean {
  // At the start of a query these are names.
  if (at === 0 || isMark(tokens[at - 1], "(")) return false;
  return ["ordinality", "time", "ties", "rollup", "query"].some((word) => isWord(tokens[at + 1], word));
}

const isIndexWord = (token: Token | undefined): boolean => isWord(token, "index") || isWord(token, "key");

/** The index of the last part of `schema.table`. */
function endOfName(tokens: readonly Token[], start: number): number {
  let end = start;
  while (isMark(tokens[end + 1], ".") && tokens[end + 2] !== undefined) end += 2;
  return end;
}

/** The names that the statement's own WITH clause defines. undefined: not understood. */
function commonTables(tokens: readonly Token[]): readonly CommonTable[] | undefined {
  if (!isWord(tokens[0], "with")) return [];
  const tables: CommonTable[] = [];
  for (let at = isWord(tokens[1], "recursive") ? 2 : 1; ; at++) {
    const name = tokens[at];
    if (name === undefined || (name.kind !== "word" && name.kind !== "name")) return undefined;
    at++;
    if (isMark(tokens[at], "(")) at = closing(tokens, at) + 1;
    if (!isWord(tokens[at], "as")) return undefined;
    at++;
    if (isWord(tokens[at], "not")) at++;
    if (isWord(tokens[at], "materialized")) at++;
    if (!isMark(tokens[at], "(")) return undefined;
    at = closing(tokens, at);
    tables.push({ name: name.text, end: at });
    if (!isMark(tokens[at + 1], ",")) return tables;
    at++;
  }
}

/** The index of the parenthesis that closes the one at `open`; beyond the end when none does. */
function closing(tokens: readonly Token[], open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (isMark(tokens[at], "(")) depth++;
    else if (isMark(tokens[at], ")") && --depth === 0) return at;
  }
  return tokens.length;
}
