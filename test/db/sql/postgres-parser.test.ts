// What PostgreSQL's own parser says of statements, next to the tokenizer where it is not installed.
import { beforeAll, describe, expect, test } from "vitest";
import { settled } from "../../../src/db/sql/settled-statement.ts";
import { type Statement, statementsIn } from "../../../src/db/sql/statement.ts";
import { type BothReadings, parserAndTokenizer } from "./both-readers.ts";

let both: (sql: string) => BothReadings;

beforeAll(async () => {
  both = await parserAndTokenizer();
});

const read = (...tables: string[]) => [{ kind: "read", tables }];
const write = (...tables: string[]) => [{ kind: "write", tables, effects: { anything: false } }];
const ANYTHING = [{ kind: "write", effects: { anything: true } }];
const HARMLESS = [{ kind: "harmless", effects: { anything: false, locks: undefined } }];
const LOCK = [{ kind: "harmless", effects: { locks: "transaction" } }];

describe("parser and tokenizer agree:", () => {
  test.each<[string, readonly object[]]>([
    ["SELECT * FROM users WHERE id = $1", read("users")],
    ['SELECT * FROM "User" u JOIN app."Order Items" AS i ON true', read("User", "Order Items")],
    ["WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN b ON true", read("a", "b")],
    ["WITH x AS (SELECT * FROM users), users AS (SELECT * FROM x) SELECT * FROM users", read("users")],
    ["WITH RECURSIVE t(n) AS (SELECT id FROM a UNION ALL SELECT n FROM t) SELECT * FROM t", read("a")],
    ["SELECT * FROM public.x, (VALUES (1)) AS x(i), unnest($1::int[]) AS t(id)", read("x")],
    ["SELECT extract(year FROM at) FROM a WHERE b IS NOT DISTINCT FROM c", read("a")],
    ["INSERT INTO a (i) VALUES (1) ON CONFLICT (i) DO UPDATE SET i = excluded.i RETURNING *", write("a")],
    ["UPDATE ONLY a SET (i, j) = (SELECT 1, 2 FROM b) FROM c", write("a")],
    ["DELETE FROM a USING b WHERE a.id = b.id", write("a")],
    ["MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DELETE", write("a")],
    ["COPY a (i) FROM STDIN", write("a")],
    ["SELECT own(1) FROM a", ANYTHING],
    ["SELECT 1 INTO z FROM a", ANYTHING],
    ["TRUNCATE a, b", ANYTHING],
    ["CALL p()", ANYTHING],
    ["DO $$ BEGIN DELETE FROM a; END $$", ANYTHING],
    ["EXPLAIN ANALYZE DELETE FROM a", ANYTHING],
    ["CREATE TABLE z AS SELECT * FROM a", ANYTHING],
    ["COMMIT PREPARED 'x'", ANYTHING],
    ["SELECT now(), id FROM a", HARMLESS],
    ["SELECT id FROM a WHERE at < 'today'::date", HARMLESS],
    ["SELECT current_user FROM a", HARMLESS],
    ["SELECT 1", HARMLESS],
    ["SELECT * FROM a TABLESAMPLE system(1)", HARMLESS],
    ["EXPLAIN SELECT * FROM a", HARMLESS],
    ["SELECT * FROM a FOR UPDATE OF x", LOCK],
    ["LOCK TABLE a", LOCK],
    ["BEGIN", [{ kind: "begin", isPlain: true }]],
    ["BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", [{ kind: "begin", isPlain: true }]],
    ["START TRANSACTION ISOLATION LEVEL SERIALIZABLE", [{ kind: "begin", isPlain: false }]],
    ["COMMIT AND CHAIN", [{ kind: "commit" }]],
    ["ROLLBACK TO SAVEPOINT S", [{ kind: "rollback to", name: "s" }]],
    ["SAVEPOINT s", [{ kind: "savepoint", name: "s" }]],
    ["RELEASE s", [{ kind: "release", name: "s" }]],
    ["PREPARE TRANSACTION 'x'", [{ kind: "rollback" }]],
    ["SET x = 1", [{ kind: "harmless", effects: { settings: true } }]],
    ["SELECT set_config('a', 'b', true)", [{ kind: "harmless", effects: { settings: true } }]],
    ["SELECT 1 FROM a; DELETE FROM b", [...read("a"), ...write("b")]],
    ["CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END", ANYTHING],
    [`SELECT * FROM ${"t".repeat(70)}`, read("t".repeat(63))],
    ["SELECT * FROM \u00c4Pfel", read("\u00c4pfel")],
    ["", []],
    ["-- nothing", []],
  ])("%s", (sql, expected) => {
    const { tokens, tree } = sql === "" ? { tokens: [], tree: [] } : both(sql);
    expect(tokens).toMatchObject(expected);
    expect(tree).toMatchObject(expected);
  });
});

describe("the parser knows better:", () => {
  test.each<[string, readonly object[]]>([
    ["TABLE users", read("users")],
    ["SELECT id FROM users UNION ALL TABLE orders", read("users", "orders")],
    ["SELECT * FROM a WHERE x IN (WITH b AS (SELECT 1 FROM c) SELECT * FROM b)", read("a", "c")],
    ["SELECT insert, a.update, delete FROM a", read("a")],
    ["SELECT * FROM ROWS FROM (unnest($1), unnest($2)) AS r, a", read("a")],
    ["SELECT * FROM a ORDER BY id FETCH FIRST 5 ROWS ONLY", read("a")],
    ["SELECT sum(x) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM a", read("a")],
    ["SELECT * FROM a WHERE b = U&'d\\0061t'", read("a")],
    ["WITH x AS (DELETE FROM a RETURNING id) INSERT INTO b SELECT id FROM x", write("b", "a")],
    ["WITH x AS (SELECT 1 FROM c) UPDATE a SET i = 1", write("a")],
    ["WITH x AS (DELETE FROM a RETURNING id) SELECT * FROM x", write("a")],
  ])("%s", (sql, expected) => {
    const { tokens, tree } = both(sql);
    expect(tree).toMatchObject(expected);
    expect(tokens[0]?.kind).not.toBe("read");
    expect(tokens).not.toMatchObject(expected);
  });
});

describe("a closed world:", () => {
  test.each([
    "SELECT xmlelement(name a) FROM users",
    "SELECT json_value(a, '$.x') FROM users",
    "SELECT * FROM users, XMLTABLE('x' PASSING y COLUMNS a int)",
    "SELECT * FROM users, JSON_TABLE(a, '$' COLUMNS (b int)) AS t",
    "WITH RECURSIVE t(n) AS (SELECT 1 FROM users UNION ALL SELECT n FROM t) SEARCH DEPTH FIRST BY n SET s SELECT * FROM t",
  ])("%s has a node that is not known, and may do anything", (sql) => {
    expect(both(sql).tree).toMatchObject(ANYTHING);
  });

  test("what the parser refuses is not cached, and still a write if it looks like one", () => {
    expect(statementsIn("SELECT * FROM users AS OF SYSTEM TIME 1", "postgres")).toMatchObject(HARMLESS);
    expect(statementsIn("UPSERT INTO users VALUES (1)", "postgres")).toMatchObject(ANYTHING);
    expect(statementsIn("INSERT INTO users VALUES (1) ON DUPLICATE KEY", "postgres")).toMatchObject([
      { kind: "write", tables: ["users"] },
    ]);
  });

  test("where a backslash may escape a quote, the tokenizer decides", () => {
    expect(statementsIn("SELECT * FROM users WHERE a = '\\' FROM b'", "postgres")).toMatchObject(ANYTHING);
    expect(statementsIn("SELECT * FROM users\0; DELETE FROM b", "postgres")).toMatchObject(ANYTHING);
  });
});

describe("bounds:", () => {
  const only = (sql: string): Statement => settled(statementsIn(sql, "postgres")[0]!);

  test("a text of more than 10,000 characters is left to the tokenizer", () => {
    const long = (sql: string) => `${sql} /* ${"x".repeat(10_000)} */`;
    expect(only("TABLE users")).toMatchObject({ kind: "read" });
    expect(only(long("TABLE users"))).toMatchObject({ kind: "harmless" });
    expect(only(long("SELECT * FROM users"))).toEqual({ kind: "read", tables: ["users"] });
    const literal = "x".repeat(9_000_000);
    expect(only(`INSERT INTO users (name) VALUES ('${literal}')`)).toMatchObject({
      kind: "write",
      tables: ["users"],
    });
  });

  test.each([
    ["parentheses", "(", "1", ")", 4_900],
    ["minus signs", "- ", "1", "", 4_900],
    ["NOT", "NOT ", "a", "", 2_400],
    ["queries", "(SELECT ", "1", ")", 1_000],
    ["arrays", "ARRAY[", "1", "]", 1_300],
    ["calls", "abs(", "1", ")", 1_900],
    ["cases", "CASE WHEN ", "a", " THEN 1 END", 450],
  ])("%s nested as deep as a text can hold are no error", (_, opening, inside, closing, depth) => {
    const sql = `SELECT ${opening.repeat(depth)}${inside}${closing.repeat(depth)} FROM users`;
    expect(() => statementsIn(sql, "postgres")).not.toThrow();
    // It still parses afterwards.
    expect(only(`TABLE users /* ${opening} */`)).toMatchObject({ kind: "read" });
  });
});

test("a read by primary key keeps its row", () => {
  const [statement] = statementsIn("SELECT name FROM users WHERE id = $1", "postgres");
  expect(statement).toMatchObject({ kind: "read", point: new Map([["id", 0]]) });
});
