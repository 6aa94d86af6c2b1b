// Recognizes a SELECT of one row by its primary key, as far as the tokens prove it.
import { isMark, isWord, type Token } from "./sql-tokens.ts";

/** Columns that must equal a parameter, with the index of its value. */
export type PointRead = ReadonlyMap<string, number>;

/**
 * The equalities of `SELECT columns FROM table [[AS] alias] WHERE a = $1 AND ... [LIMIT ...]`. undefined: any other
 * statement. If they include a primary key, the rows returned are those of one row of the table. Anything with a call, an
 * aggregate, a join or a subquery is another statement.
 */
export function pointRead(tokens: readonly Token[]): PointRead | undefined {
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
  return equalities(end < 0 ? conditions : conditions.slice(0, end), tokens);
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

function equalities(conditions: readonly Token[], all: readonly Token[]): PointRead | undefined {
  // Only AND is left between conditions, so their grouping does not matter.
  const flat = conditions.filter((token) => !isMark(token, "(") && !isMark(token, ")"));
  if (!hasBalancedGroups(conditions)) return undefined;
  const found = new Map<string, number>();
  for (const condition of splitAtAnd(flat)) {
    const equality = equalityOf(condition);
    if (equality === undefined) return undefined;
    if (equality === "other") continue;
    const uses = all.filter(({ kind, text }) => kind === "value" && text === equality.value.text);
    // A second use may give the parameter another type.
    if (uses.length === 1) found.set(equality.column, Number(equality.value.text.slice(1)) - 1);
  }
  return found.size === 0 ? undefined : found;
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
  if (column === undefined || value?.kind !== "value" || !value.text.startsWith("$")) return "other";
  return { column, value };
}

/** A column, a parameter or a literal. */
function isOperand(tokens: readonly Token[]): boolean {
  const [first] = tokens;
  const isSimple = first?.kind === "value" || first?.kind === "number" || first?.kind === "text";
  return columnOf(tokens) !== undefined || (tokens.length === 1 && isSimple);
}

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
