// PostgreSQL's own parser against the tokenizer: statements of a grammar, made at random from a seed.
import { beforeAll, expect, test } from "vitest";
import type { Statement } from "../../../src/db/sql/statement.ts";
import { parserAndTokenizer } from "./both-readers.ts";
import { randomSql } from "./random-sql.ts";

let both: Awaited<ReturnType<typeof parserAndTokenizer>>;

beforeAll(async () => {
  both = await parserAndTokenizer();
});

/** What the tokenizer says that is less careful than what the parser says. */
function carelessness(tokens: readonly Statement[], tree: readonly Statement[]): string | undefined {
  const [read] = tokens;
  if (tokens.length === 1 && read?.kind === "read") {
    const [actual] = tree;
    if (tree.length !== 1 || actual?.kind !== "read") return `a read, not ${tree.map(({ kind }) => kind)}`;
    const other = actual.tables.filter((table) => !read.tables.includes(table));
    return other.length > 0 ? `not a read of ${other}` : undefined;
  }
  const [told, actual] = [tokens, tree].map((statements) => written(statements));
  if (told!.anything) return undefined;
  if (actual!.anything) return "not a write of anything";
  const other = actual!.tables.filter((table) => !told!.tables.includes(table));
  return other.length > 0 ? `not a write of ${other}` : undefined;
}

function written(statements: readonly Statement[]) {
  const writes = statements.filter((each) => each.kind === "write");
  return {
    tables: writes.flatMap(({ tables }) => tables),
    anything: writes.some(({ effects }) => effects.anything),
  };
}

test("the tokenizer is never less careful than the parser", () => {
  const found = new Map<string, string>();
  const kinds = new Map<string, number>();
  for (let seed = 1; seed <= 3_000; seed++) {
    const sql = randomSql(seed);
    const { tokens, tree } = both(sql);
    if (tree === "invalid") continue;
    const kind = `${tokens[0]?.kind} ${tree[0]?.kind}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const careless = carelessness(tokens, tree);
    if (careless !== undefined) found.set(sql, careless);
  }
  expect([...found].slice(0, 20)).toEqual([]);
  // The statements are such that both have something to say.
  expect(kinds.get("read read")).toBeGreaterThan(100);
  expect(kinds.get("write write")).toBeGreaterThan(100);
});
