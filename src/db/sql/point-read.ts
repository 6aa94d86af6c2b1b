// Recognizes a SELECT of one row by its primary key, as far as the tokens prove it.
import { isMark, isWord, type SqlDialect, type Token } from "./sql-tokens.ts";

/** Columns that must equal one value: a parameter by the index of its value, or the text of a literal. */
export type PointRead = ReadonlyMap<string, number | string>;

/**
 * The equalities of `SELECT columns FROM table [[AS] alias] WHERE a = $1 AND b = 2 ... [LIMIT ...]`. undefined: any other
 * statement. If they include a primary key, the rows returned are those of one row of the table. Anything with a call, an
 * aggregate, a join or a subquery is another statement.
 */
export function pointRead(tokens: readonly Token[], dialect: SqlDialect): PointRead | undefined {
  // Feeds of SQLite do not tell of rows.
  if (dialect === "sqlite") return undefined;
  const from = tokens.findIndex((token) => isWord(token, "from"));
  const where = tokens.findIndex((token) => isWord(token, "where"));
  if (!isWord(tokens[0], "select") || from < 0 || where < from) return undefined;
  // A parenthesis in the list may be an aggregate, which has a row also where the table has none.
  if (tokens.slice(0, from).some((token) => isMark(token, "("))) return undefined;
  if (!isSingleTable(tokens.slice(from + 1, where))) return undefined;
  const conditions = tokens.slice(where + 1);
  const end = conditions.findIndex((token) => isWord(token, "limit"));
  const rest = end < 0 ? [] : conditions.slice(end);
  if (!isLimit(rest)) return undefined;
  return equalities(end < 0 ? conditions : conditions.slice(0, end), tokens, dialect);
}

/** `schema.table`, and perhaps an alias. */
function isSingleTable(tokens: readonly Token[]): boolean {
  let at = 1;
  while (isMark(tokens[at], ".")) at += 2;
  if (isWord(tokens[at], "as")) at++;
  return tokens.length - at <= 1 && tokens.every((token) => token.kind !== "mark" || token.text === ".");
}

/** `LIMIT 1`, `LIMIT $2 OFFSET $3`. */
function isLimit(tokens: readonly Token[]): boolean {
  return tokens.every(
    (token) =>
      token.kind === "number" || token.kind === "value" || isWord(token, "limit") || isWord(token, "offset"),
  );
}

function equalities(
  conditions: readonly Token[],
  all: readonly Token[],
  dialect: SqlDialect,
): PointRead | undefined {
  // Only AND is left between conditions, so their grouping does not matter.
  const flat = conditions.filter((token) => !isMark(token, "(") && !isMark(token, ")"));
  if (!hasBalancedGroups(conditions)) return undefined;
  const found = new Map<string, number | string>();
  for (const condition of splitAtAnd(flat)) {
    const equality = equalityOf(condition);
    if (equality === undefined) return undefined;
    if (equality === "other") continue;
    const value = constantOf(equality.value, all, dialect);
    // MySQL ignores the case of columns.
    const column = dialect === "mysql" ? equality.column.toLowerCase() : equality.column;
    if (value !== undefined) found.set(column, value);
  }
  return found.size === 0 ? undefined : found;
}

/** undefined: which row it denotes is not certain. */
function constantOf(token: Token, all: readonly Token[], dialect: SqlDialect): number | string | undefined {
  const { kind, text } = token;
  if (kind === "number") return text;
  // In MySQL a hexadecimal literal looks the same, and in PostgreSQL one of another type ignores spaces at its end.
  if (kind === "text") return dialect === "postgres" && /^[^\\']*[^\\' ]$/.test(text) ? text : undefined;
  if (dialect === "mysql") return all.filter((each) => each.kind === "value").indexOf(token);
  if (!text.startsWith("$")) return undefined;
  const uses = all.filter((each) => each.kind === "value" && each.text === text);
  // A second use may give the parameter another type.
  return uses.length === 1 ? Number(text.slice(1)) - 1 : undefined;
}

/** A parenthesis may open only where a condition begins and close where one ends. */
function hasBalancedGroups(tokens: readonly Token[]): boolean {
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    if (isMark(token, "(")) {
      const before = tokens[at - 1];
      if (before !== undefined && !isMark(before, "(") && !isWord(before, "and")) return false;
      depth++;
    } else if (isMark(token, ")")) {
      const after = tokens[at + 1];
      if (after !== undefined && !isMark(after, ")") && !isWord(after, "and")) return false;
      if (--depth < 0) return false;
    }
  }
  return depth === 0;
}

function splitAtAnd(tokens: readonly Token[]): readonly (readonly Token[])[] {
  const parts: Token[][] = [[]];
  for (const token of tokens) {
    if (isWord(token, "and")) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts;
}

interface Equality {
  readonly column: string;
  readonly value: Token;
}

/** `other`: a condition that only narrows the result further. undefined: not understood. */
function equalityOf(tokens: readonly Token[]): Equality | "other" | undefined {
  const at = tokens.findIndex((token) => isMark(token, "="));
  if (at < 0) return isNullTest(tokens) ? "other" : undefined;
  const [left, right] = [tokens.slice(0, at), tokens.slice(at + 1)];
  const column = columnOf(left) ?? columnOf(right);
  const [value] = columnOf(left) === undefined ? left : right;
  const isPair = left.length > 0 && right.length > 0 && [left, right].every(isOperand);
  if (!isPair) return undefined;
  return column === undefined || value === undefined || !isConstant(value) ? "other" : { column, value };
}

/** A column, a parameter or a literal. */
function isOperand(tokens: readonly Token[]): boolean {
  const [first] = tokens;
  return columnOf(tokens) !== undefined || (tokens.length === 1 && first !== undefined && isConstant(first));
}

/** A parameter or a literal. */
const isConstant = ({ kind }: Token): boolean => kind === "value" || kind === "number" || kind === "text";

/** The name of `table.column`. */
function columnOf(tokens: readonly Token[]): string | undefined {
  const isName = tokens.every((token, at) =>
    at % 2 === 1 ? isMark(token, ".") : token.kind === "word" || token.kind === "name",
  );
  return isName && tokens.length % 2 === 1 ? tokens.at(-1)?.text : undefined;
}

/** `column IS NULL`, `column IS NOT NULL`. */
function isNullTest(tokens: readonly Token[]): boolean {
  const at = tokens.findIndex((token) => isWord(token, "is"));
  if (at < 0 || columnOf(tokens.slice(0, at)) === undefined) return false;
  const rest = tokens.slice(at + 1);
  const test = isWord(rest[0], "not") ? rest.slice(1) : rest;
  return test.length === 1 && isWord(test[0], "null");
}
