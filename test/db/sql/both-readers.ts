// Both ways to read the text of a statement for PostgreSQL, side by side.

import { postgresParser } from "../../../src/db/sql/postgres-parser.ts";
import type { Trust } from "../../../src/db/sql/settled-statement.ts";
import { settled } from "../../../src/db/sql/settled-statement.ts";
import { type Statement, tokenized } from "../../../src/db/sql/statement.ts";

/** The catalogue of a database in which the application has made these functions. */
const OWN = [
  "match",
  "key",
  "filter",
  "partition",
  "left",
  "set",
  "cube",
  "own",
  "text",
  "date",
  "join",
  "like",
];
const trustOf = (name: string): Trust =>
  OWN.includes(name) ? "own" : name === "now" ? "stable" : "immutable";

export interface BothReadings {
  readonly tokens: readonly Statement[];
  readonly tree: readonly Statement[] | "invalid";
}

export async function parserAndTokenizer(): Promise<(sql: string) => BothReadings> {
  await postgresParser.load();
  const all = (statements: readonly Statement[]) => statements.map((each) => settled(each, trustOf));
  return (sql) => {
    const tree = postgresParser.parsed(sql);
    if (tree === undefined) throw new Error(`not parsed: ${sql}`);
    return { tokens: all(tokenized(sql, "postgres")), tree: tree === "invalid" ? tree : all(tree) };
  };
}
