// What explain says of a statement, what DEBUG=xcache:db writes, and the warning about a table that nobody names.
import { createPool } from "mysql2";
import pg from "pg";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { CacheForSessions } from "../../../src/core/db-session.ts";
import { explain } from "../../../src/db/explain.ts";
import { postgresParser } from "../../../src/db/sql/postgres-parser.ts";
import { statementsIn } from "../../../src/db/sql/statement.ts";
import { CachedTables } from "../../../src/db/tracking/cached-tables.ts";
import { debugOf } from "../../../src/db/tracking/debug.ts";
import { cachedDependency } from "../../db/database.ts";
import { until } from "../../support/until.ts";

const cache = {
  get() {},
  getOrSet() {},
  invalidateTags() {},
  tables: { users: { tags: ["people"] } },
} as unknown as CacheForSessions;

/** Nothing is sent over it. */
const session = () => cachedDependency(() => new pg.Pool(), { cache, tableName: ["users", "orders"] })();

/** As if PostgreSQL's own parser were not installed. */
function withoutParser(): void {
  vi.spyOn(postgresParser, "parsed").mockReturnValue(undefined);
  postgresParser.generation++;
}

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  postgresParser.generation++;
});

describe("explain", () => {
  test("tells the tables and tags of a read that is cached", async () => {
    expect(await explain(session(), "SELECT * FROM users u JOIN orders ON true")).toEqual({
      isCached: true,
      isWrite: false,
      reason: "it only reads tables in tableName",
      tables: ["users", "orders"],
      tags: ["table:users", "table:orders", "people"],
    });
  });

  test.each([
    ["SELECT * FROM logs", "tableName does not name logs"],
    ["SELECT now() FROM users", "it calls now(), whose result changes"],
    ["SELECT id FROM users WHERE at < CURRENT_DATE", '"current_date" is not the same for every reader'],
    ["SELECT * FROM users FOR UPDATE", "it locks rows"],
    ["SELECT 1", "it reads no table that is certain"],
    ["SHOW search_path", "it begins with SHOW"],
    ["BEGIN", "it is part of a transaction (BEGIN)"],
    ["SELECT 1; SELECT 2", "it has 2 statements"],
    ["SELECT now(), 1 FROM users WHERE id IN (SELECT id FROM users)", "it calls now(), whose result changes"],
    ["SELECT * FROM users WHERE at > 'yesterday'", '"yesterday" is not the same for every reader'],
    ["SELECT set_config('a', 'b', true) FROM users", "it calls set_config(), whose result changes"],
    ["-- nothing", "it is empty"],
    ["CREATE TABLE a (b int)", "taken for a write of every table in tableName: it begins with CREATE"],
    [
      "SELECT '\\' FROM users'",
      "taken for a write of every table in tableName: its text is ambiguous, too long or not understood",
    ],
  ])("says why %s is not cached, with and without a parser", async (text, reason) => {
    expect(await explain(session(), text)).toMatchObject({ isCached: false, reason });
    withoutParser();
    expect(await explain(session(), text)).toMatchObject({ isCached: false, reason });
  });

  test.each([
    ["TABLE users", "it only reads tables in tableName", "it reads no table that is certain"],
    [
      "SELECT U&'x' FROM users",
      "it only reads tables in tableName",
      "taken for a write of every table in tableName: its text is ambiguous, too long or not understood",
    ],
    [
      "SELECT U&'x' FROM users WHERE at < CURRENT_TIMESTAMP(3)",
      '"current_timestamp" is not the same for every reader',
      "taken for a write of every table in tableName: its text is ambiguous, too long or not understood",
    ],
    [
      "/* a */ -- b\n INSERT INTO users VALUES (U&'x')",
      "taken for a write of users: it begins with INSERT",
      "taken for a write of every table in tableName: its text is ambiguous, too long or not understood",
    ],
    [
      "WITH gone AS (DELETE FROM users RETURNING id) INSERT INTO logs SELECT id FROM gone",
      "taken for a write of logs, users: it changes logs, users",
      "taken for a write of every table in tableName: it begins with WITH",
    ],
    [
      "SELECT xmlelement(name a) FROM users",
      "taken for a write of every table in tableName: its parse tree has XmlExpr, which is not known",
      "taken for a write of every table in tableName: it calls xmlelement(), which is not known, which may write anything",
    ],
    [
      "SELECT 1 INTO made FROM users",
      "taken for a write of every table in tableName: its parse tree has SelectStmt.intoClause, which is not known",
      "taken for a write of every table in tableName: it begins with SELECT",
    ],
    [
      "SELECT * FROM users TABLESAMPLE system(1)",
      "it reads a sample of a table",
      "it reads no table that is certain",
    ],
    [
      "SELECT * FROM users AS OF SYSTEM TIME 1",
      "PostgreSQL's parser does not accept it",
      "it only reads tables in tableName",
    ],
    ["SELECT 1; SELECT U&'x'", "it has 2 statements", "its text is ambiguous, too long or not understood"],
  ])("says of %s what the parser has decided, else the tokens", async (text, parsed, tokenized) => {
    expect((await explain(session(), text)).reason).toBe(parsed);
    withoutParser();
    expect((await explain(session(), text)).reason).toContain(tokenized);
  });

  test("decides as the session does", async () => {
    const { isCached } = await explain(session(), "TABLE users");
    expect(isCached).toBe(statementsIn("TABLE users", "postgres")[0]?.kind === "read");
  });

  test.each([
    ["UPDATE users SET name = 'a'", "of users: it begins with UPDATE", ["table:users"]],
    [
      "SELECT mine(id) FROM users",
      "of every table in tableName: it calls mine(), which is not known, which may write anything",
      ["table:users", "table:orders"],
    ],
    [
      "SELECT now(), mine(id) FROM users",
      "of every table in tableName: it calls mine(), which is not known, which may write anything",
      ["table:users", "table:orders"],
    ],
    ["CALL change()", "of every table in tableName: it begins with CALL", ["table:users", "table:orders"]],
  ])("says by what %s is taken for a write", async (text, reason, tags) => {
    const expected = { isCached: false, isWrite: true, reason: `taken for a write ${reason}`, tags };
    expect(await explain(session(), text)).toMatchObject(expected);
    withoutParser();
    expect(await explain(session(), text)).toMatchObject(expected);
  });

  test("reads each database's own SQL", async () => {
    const pool = createPool({});
    const mysql = cachedDependency(() => pool, { cache, tableName: "users" })();
    expect(await explain(mysql, "SELECT `name` FROM users # all")).toMatchObject({ isCached: true });
    expect(await explain(mysql, "SELECT @x FROM users")).toMatchObject({
      reason: '"@" is not the same for every reader',
    });
    pool.end();
  });

  test("refuses what cachedDependency has not handed out, and what is not a text", async () => {
    for (const other of [new pg.Pool(), null, "SELECT 1"]) {
      await expect(explain(other as object, "SELECT 1")).rejects.toThrow("explain(): expected a session");
    }
    await expect(explain(session(), 1 as never)).rejects.toThrow("expected the text of a statement");
  });
});

describe("DEBUG", () => {
  test.each(["", "http", "xcache"])("%s writes nothing", (names) => {
    vi.stubEnv("DEBUG", names);
    expect(debugOf({ cache, tables: ["users"] })).toBeUndefined();
  });

  test.each(["xcache:db", "http,xcache:*", "*"])("%s writes a line for each statement", async (names) => {
    vi.stubEnv("DEBUG", names);
    const lines: string[] = [];
    vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
    const debug = debugOf({ cache, tables: ["users"] });
    debug?.("SELECT *\n FROM users", "postgres");
    debug?.("SELECT * FROM users", "postgres", "it is in a transaction");
    debug?.("DELETE FROM users WHERE name = 'it''s \\'secret' AND id = 'secret", "mysql");
    await until(() => lines.length === 3, { what: "the lines are written" });
    expect(lines).toEqual([
      "xcache:db cached: it only reads tables in tableName; tables: users; tags: table:users, people; SELECT * FROM users\n",
      "xcache:db not cached: it is in a transaction; tables: users; tags: none; SELECT * FROM users\n",
      expect.not.stringContaining("secret"),
    ]);
  });
});

test("a tableName that none of a thousand statements names is warned of once", () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const tables = new CachedTables({ cache, tables: ["app.Users", "oders"] });
  const [read] = [statementsIn("SELECT * FROM users", "postgres")];
  for (let statement = 0; statement < 999; statement++) tables.note(read);
  expect(warn).not.toHaveBeenCalled();
  for (let statement = 0; statement < 2_000; statement++) tables.note(read);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(warn.mock.calls[0]?.[0]).toContain("a write of oders.");
});
