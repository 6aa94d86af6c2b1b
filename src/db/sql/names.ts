// The names of tables at known places of a statement.
import { isMark, isWord, type Token } from "./sql-tokens.ts";

/** The table that an INSERT, REPLACE, UPDATE, DELETE or MERGE changes, and the index of its name. */
export function changedTable(tokens: readonly Token[]): {
  readonly at: number;
  readonly name: string | undefined;
} {
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

/** The table named right after the token at `start`. */
export function nameAfter(tokens: readonly Token[], start: number): string | undefined {
  return changedTable([{ kind: "word", text: "update" }, ...tokens.slice(start + 1, start + 8)]).name;
}

/** Every name that may be a table. */
export function namesIn(tokens: readonly Token[]): readonly string[] {
  return [
    ...new Set(tokens.filter(({ kind }) => kind === "word" || kind === "name").map(({ text }) => text)),
  ];
}
