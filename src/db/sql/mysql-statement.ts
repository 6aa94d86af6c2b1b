// Classifies the statements of MySQL and MariaDB: their own grammar, and which of them commit the transaction they are in.
import { ANYTHING, analyse, HARMLESS, NO_EFFECTS, type Statement } from "./analysis.ts";
import { namesIn } from "./names.ts";
import { pointRead } from "./point-read.ts";
import { tablesRead } from "./query-tables.ts";
import { isMark, isWord, type Token } from "./sql-tokens.ts";

/** DDL, a procedure or whatever else is not known. */
const MAY_COMMIT = { ...ANYTHING, effects: { ...ANYTHING.effects, commits: true } } satisfies Statement;

/** A text that is not understood. */
export const anythingInMysql = (tables: readonly string[] = []): Statement => ({ ...MAY_COMMIT, tables });

/** The statements of one text. */
export function classifyMysql(statements: readonly (readonly Token[])[]): readonly Statement[] {
  const classified = statements.map(classify);
  // Parts of a compound statement, of which nobody knows whether and how often they were executed.
  const isCompound =
    classified.length > 1 && classified.some(({ kind }, at) => kind === "write" && isUnknown(statements[at]));
  return isCompound ? [anythingInMysql(namesIn(statements.flat()))] : classified;
}

const QUERIES: ReadonlySet<string> = new Set(["select", "with", "values", "table"]);
const CHANGES: ReadonlySet<string> = new Set(["insert", "replace", "update", "delete"]);
const HARMLESS_WORDS: ReadonlySet<string> = new Set([
  ...["explain", "describe", "desc", "show", "help", "do", "handler", "prepare", "deallocate", "kill", "use"],
]);
const ENDINGS: ReadonlySet<string> = new Set(["commit", "rollback", "savepoint", "release"]);
/** They commit, but change the tables that they name, at most. */
const DEFINITIONS: ReadonlySet<string> = new Set(["truncate", "alter", "drop", "rename", "load"]);

/** Whether nothing is known of a statement but that it may do anything. */
function isUnknown(tokens: readonly Token[] | undefined): boolean {
  const word = tokens?.[0]?.kind === "word" ? tokens[0].text : "";
  return (
    ![QUERIES, CHANGES, HARMLESS_WORDS, ENDINGS, DEFINITIONS].some((words) => words.has(word)) &&
    !["set", "create"].includes(word)
  );
}

function classify(tokens: readonly Token[]): Statement {
  const [first, second] = tokens;
  if (isMark(first, "(")) return query(tokens);
  if (first?.kind !== "word") return MAY_COMMIT;
  const word = first.text;
  if (QUERIES.has(word)) return query(tokens);
  if (CHANGES.has(word)) return change(tokens);
  if (HARMLESS_WORDS.has(word)) return aside(tokens);
  if (DEFINITIONS.has(word)) return anythingInMysql(namesIn(tokens.slice(1)));
  switch (word) {
    case "begin":
      return isWord(second, "not") ? MAY_COMMIT : { kind: "begin", isPlain: true };
    case "start":
      return isWord(second, "transaction") ? { kind: "begin", isPlain: true } : MAY_COMMIT;
    case "commit":
      return { kind: "commit" };
    case "rollback": {
      const isPartial = tokens.some((token) => isWord(token, "to"));
      return isPartial ? { kind: "rollback to", name: nameOf(tokens.at(-1)) } : { kind: "rollback" };
    }
    case "savepoint":
      return { kind: "savepoint", name: nameOf(second) };
    case "release":
      return { kind: "release", name: nameOf(tokens.at(-1)) };
    case "set":
      return setting(tokens);
    case "lock":
      return { kind: "harmless", effects: { ...NO_EFFECTS, locks: "session", commits: true } };
    case "flush":
      // Sets back the count of temporary tables, so that nobody can tell any more whether there are some.
      return tokens.some((token) => isWord(token, "status"))
        ? { ...MAY_COMMIT, effects: { ...MAY_COMMIT.effects, locks: "session" } }
        : MAY_COMMIT;
    case "unlock":
      return { kind: "harmless", effects: { ...NO_EFFECTS, commits: true } };
    default:
      return MAY_COMMIT;
  }
}

const nameOf = (token: Token | undefined): string => token?.text.toLowerCase() ?? "";

/** SELECT, or WITH followed by any statement. */
function query(tokens: readonly Token[]): Statement {
  const changing = tokens.findIndex((token, at) => isChange(tokens, token, at));
  if (changing >= 0) return changeOf(tokens.slice(changing), tokens);
  const { isPlain, effects, calls } = analyse(tokens, "mysql");
  // INTO writes a variable or a file.
  const isCacheable = isPlain && !tokens.some((token) => isWord(token, "into"));
  const tables = isCacheable ? tablesRead(tokens, "mysql") : undefined;
  // Without a table there is no tag, and `SELECT 1` is a health check.
  return tables === undefined || tables.length === 0
    ? { kind: "harmless", effects, ...calls }
    : { kind: "read", tables, ...calls, ...(tables.length === 1 && { point: pointRead(tokens, "mysql") }) };
}

/** UPDATE or DELETE after a WITH clause; the UPDATE of FOR UPDATE does not count. */
function isChange(tokens: readonly Token[], token: Token, at: number): boolean {
  if (token.kind !== "word" || !/^(update|delete)$/.test(token.text)) return false;
  return !isWord(tokens[at - 1], "for") && !isMark(tokens[at - 1], ".");
}

/** EXPLAIN and the like. A function that is called among them may be carried out. */
function aside(tokens: readonly Token[]): Statement {
  const word = tokens[0]?.text;
  const isExplain = word === "explain" || word === "describe" || word === "desc";
  if (isExplain && tokens.some((token) => isWord(token, "analyze"))) return MAY_COMMIT;
  if (word === "use") return { kind: "harmless", effects: { ...NO_EFFECTS, settings: true } };
  if (word !== "do") return HARMLESS;
  const { effects, calls } = analyse(tokens, "mysql");
  return { kind: "harmless", effects, ...calls };
}

/** SET autocommit = 1 and SET PASSWORD commit; SET STATEMENT carries out another statement. */
function setting(tokens: readonly Token[]): Statement {
  if (isWord(tokens[1], "statement")) return MAY_COMMIT;
  const { effects, calls } = analyse(tokens, "mysql");
  const commits = tokens.some((token) => /^(autocommit|password)$/i.test(token.text));
  return { kind: "harmless", effects: { ...effects, settings: true, ...(commits && { commits }) }, ...calls };
}

function change(tokens: readonly Token[]): Statement {
  return changeOf(tokens, tokens);
}

/** `all`: the whole statement, with a WITH clause that may stand before the change. */
function changeOf(tokens: readonly Token[], all: readonly Token[]): Statement {
  const { tables, at } = changedBy(tokens);
  if (tables.length === 0) return anythingInMysql(mayBeNames(tokens));
  // The column list of the table looks like a call.
  const analysed = tokens === all ? tokens.slice(at) : all;
  const { effects, calls } = analyse(analysed, "mysql");
  return { kind: "write", tables, effects, ...calls };
}

/** Words between the first word and the table. All are reserved, but two that a table may be called by. */
const MODIFIERS: ReadonlySet<string> = new Set([
  ...["low_priority", "delayed", "high_priority", "ignore", "into"],
]);
const OF_DELETE: ReadonlySet<string> = new Set([...MODIFIERS, "quick", "history"]);

/** The tables of a change, and the index after the name that may have a column list. Empty: not understood. */
export function changedBy(tokens: readonly Token[]): {
  readonly tables: readonly string[];
  readonly at: number;
} {
  const word = tokens[0]?.text;
  const modifiers = word === "delete" ? OF_DELETE : MODIFIERS;
  let at = 1;
  while (tokens[at]?.kind === "word" && modifiers.has(tokens[at]?.text ?? "")) at++;
  if (word === "update" || word === "delete") return { tables: joinedTables(word, tokens.slice(at)), at: 1 };
  while (isMark(tokens[at + 1], ".")) at += 2;
  const name = tokens[at];
  const isName = name?.kind === "word" || name?.kind === "name";
  return { tables: isName ? [name.text] : [], at: at + 1 };
}

const SELECT_FROM: readonly Token[] = ["select", "x", "from"].map((text) => ({ kind: "word", text }));

/** UPDATE and DELETE may change any of the tables that they join. */
function joinedTables(word: string, tokens: readonly Token[]): readonly string[] {
  const ends = word === "update" ? ["set"] : ["where", "order", "limit", "returning"];
  const end = outside(tokens).findIndex((token) => ends.some((each) => isWord(token, each)));
  const clause = end < 0 ? tokens : tokens.slice(0, end);
  const from = clause.findIndex((token) => isWord(token, "from"));
  const listed = word === "delete" && from > 0 ? namesIn(clause.slice(0, from)) : [];
  // DELETE FROM a USING a JOIN b. What follows USING in a join is a list of columns.
  const joined = (word === "delete" ? clause.slice(from + 1) : clause).map(
    (token, at, all): Token =>
      isWord(token, "using") && !isMark(all[at + 1], "(") ? { kind: "mark", text: "," } : token,
  );
  // `DELETE a.*, b.*` and aliases are harmless: they are no tables.
  const tables = tablesRead([...SELECT_FROM, ...joined], "mysql");
  return tables === undefined || tables.length === 0 ? [] : [...new Set([...tables, ...listed])];
}

/** The tokens outside of any parentheses, the others left out, in their places. */
function outside(tokens: readonly Token[]): readonly (Token | undefined)[] {
  let depth = 0;
  return tokens.map((token) => {
    if (isMark(token, "(")) depth++;
    if (isMark(token, ")")) depth--;
    return depth === 0 ? token : undefined;
  });
}

/** In one mode of the server a text in double quotes is a name. */
const mayBeNames = (tokens: readonly Token[]): readonly string[] =>
  namesIn(tokens.map((token) => (token.kind === "text" ? { ...token, kind: "name" } : token)));
