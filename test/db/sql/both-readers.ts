// Both ways to read the text of a statement for PostgreSQL, side by side.

import { loadParser, parsed } from "../../../src/db/sql/postgres-parser.ts";
import type { Trust } from "../../../src/db/sql/settled-statement.ts";
import { settled } from "../../../src/db/sql/settled-statement.ts";
import { type Statement, statementsIn } from "../../../src/db/sql/statement.ts";

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

/** Takes what the tokenizer says of a text before the parser is loaded, by a copy of its module. */
export async function parserAndTokenizer(): Promise<(sql: string) => BothReadings> {
  const { vi } = await import("vitest");
  await loadParser();
  vi.resetModules();
  const alone = await import("../../../src/db/sql/statement.ts");
  if (alone.statementsIn === statementsIn) throw new Error("the modules are the same");
  const all = (statements: readonly Statement[]) => statements.map((each) => settled(each, trustOf));
  return (sql) => {
    const tree = parsed(sql);
    if (tree === undefined) throw new Error(`not parsed: ${sql}`);
    return { tokens: all(alone.statementsIn(sql, "postgres")), tree: tree === "invalid" ? tree : all(tree) };
  };
}
