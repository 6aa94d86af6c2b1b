// The package of the parser may be absent, too old, broken or fail later: the tokenizer decides then, and no query fails.
import { afterEach, expect, test, vi } from "vitest";

const PEERS = "../../../src/core/peer-package.ts";
const VERSIONS = "../../../src/core/peer-versions.ts";

afterEach(() => {
  vi.doUnmock(PEERS);
  vi.doUnmock(VERSIONS);
  vi.resetModules();
});

/** The library with another package in place of the parser's, loaded. `version` undefined: none is installed. */
async function withPackage(found: () => unknown, version: string | undefined = "18.0.0") {
  vi.resetModules();
  vi.doMock(PEERS, async (original) => ({ ...(await original<object>()), optionalPackage: found }));
  vi.doMock(VERSIONS, async (original) => ({
    ...(await original<object>()),
    installedVersion: () => version,
  }));
  const { loadParser } = await import("../../../src/db/sql/postgres-parser.ts");
  const { statementsIn } = await import("../../../src/db/sql/statement.ts");
  await loadParser();
  return (sql: string) => statementsIn(sql, "postgres")[0];
}

const fails = (error: Error) => () => {
  throw error;
};

test.each([
  ["absent", () => undefined, undefined],
  ["older than supported", fails(new Error("it must not be loaded")), "17.1.0"],
  ["not loadable", fails(new Error("broken")), "18.0.0"],
  ["without its module", () => ({ loadModule: () => Promise.reject(new Error("no WebAssembly")) }), "18.0.0"],
  ["another one", () => ({}), "18.0.0"],
])("where the package is %s, the tokenizer decides", async (_, found, version) => {
  const statementOf = await withPackage(found, version);
  expect(statementOf("SELECT * FROM users")).toMatchObject({ kind: "read", tables: ["users"] });
  expect(statementOf("TABLE users")).toMatchObject({ kind: "harmless" });
});

test("a parser that breaks down is not asked again", async () => {
  const parseSync = vi.fn(fails(new RangeError("memory access out of bounds")));
  const statementOf = await withPackage(() => ({ loadModule: async () => {}, parseSync }));
  expect(statementOf("SELECT * FROM users")).toMatchObject({ kind: "harmless" });
  expect(statementOf("SELECT * FROM orders")).toMatchObject({ kind: "read" });
  expect(statementOf("SELECT * FROM users")).toMatchObject({ kind: "read" });
  expect(parseSync).toHaveBeenCalledTimes(1);
});

test("a tree of another form may mean anything", async () => {
  const parseSync = () => ({
    stmts: [{ stmt: { SelectStmt: { withClause: {} } } }, { stmt: { TruncateStmt: {} } }],
  });
  const statementOf = await withPackage(() => ({ loadModule: async () => {}, parseSync }));
  expect(statementOf("SELECT * FROM users")).toMatchObject({ kind: "harmless" });
  expect(statementOf("DELETE FROM users")).toMatchObject({ kind: "write", tables: ["users"] });
});
