// The package of the parser may be absent, too old, broken or fail later: the tokenizer decides then, and no query fails.
import { expect, test, vi } from "vitest";
import { installedParser, PostgresParser } from "../../../src/db/sql/postgres-parser.ts";

const fails = (error: Error) => () => {
  throw error;
};

async function loaded(find: () => unknown): Promise<PostgresParser> {
  const parser = new PostgresParser(find);
  await parser.load();
  return parser;
}

test.each([
  ["absent", () => undefined],
  ["not loadable", fails(new Error("broken"))],
  ["without its module", () => ({ loadModule: () => Promise.reject(new Error("no WebAssembly")) })],
  ["another one", () => ({})],
])("a package that is %s is not used", async (_, find) => {
  const parser = await loaded(find);
  expect(parser.parsed("TABLE users")).toBeUndefined();
  expect(parser.generation).toBe(0);
});

test("an older version than supported is not loaded", () => {
  expect(installedParser("17.1.0")).toBeUndefined();
  expect(installedParser("18.0.0")).toHaveProperty("parseSync");
});

test("a parser that breaks down is not called again", async () => {
  const parseSync = vi.fn(fails(new RangeError("memory access out of bounds")));
  const parser = await loaded(() => ({ loadModule: async () => {}, parseSync }));
  expect(parser.generation).toBe(1);
  expect(parser.parsed("SELECT * FROM users")).toBe("invalid");
  expect(parser.generation).toBe(2);
  expect(parser.parsed("SELECT * FROM orders")).toBeUndefined();
  expect(parseSync).toHaveBeenCalledTimes(1);
});

test("a tree of another form is not understood", async () => {
  const parseSync = () => ({
    stmts: [{ stmt: { SelectStmt: { withClause: {} } } }, { stmt: { TruncateStmt: {} } }],
  });
  const parser = await loaded(() => ({ loadModule: async () => {}, parseSync }));
  expect(parser.parsed("SELECT * FROM users")).toBe("invalid");
});
