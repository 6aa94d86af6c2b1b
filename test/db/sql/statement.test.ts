// What is concluded from the text of a statement; whatever cannot be proven is no read, and a write of everything.
import { describe, expect, test } from "vitest";
import { settled } from "../../../src/db/sql/settled-statement.ts";
import { type Statement, statementsIn, tokenized } from "../../../src/db/sql/statement.ts";

const only = (sql: string, dialect: "postgres" | "sqlite" = "postgres"): Statement => {
  const statements = tokenized(sql, dialect);
  expect(statements).toHaveLength(1);
  return settled(statements[0]!);
};

const ANYTHING = { kind: "write", effects: { anything: true, settings: true } };

describe("a plain read", () => {
  test.each([
    ["SELECT * FROM users", ["users"]],
    ["select u.id from public.users u where lower(u.name) = $1 order by 1 limit 5", ["users"]],
    ['SELECT * FROM "User" JOIN app."Order Items" AS i ON true', ["User", "Order Items"]],
    ["SELECT * FROM a, b LEFT JOIN c ON c.id = b.id, d WHERE a.x IN (1, 2)", ["a", "b", "c", "d"]],
    ["SELECT * FROM (a JOIN b USING (id)) CROSS JOIN c", ["a", "b", "c"]],
    [
      "SELECT (SELECT max(id) FROM b) FROM a WHERE EXISTS (SELECT 1 FROM c, (SELECT * FROM d) q)",
      ["b", "a", "c", "d"],
    ],
    ["SELECT extract(year FROM at), substring(n FROM 1 FOR 2) FROM a WHERE x IS NOT DISTINCT FROM y", ["a"]],
    ["SELECT * FROM ONLY a, LATERAL (SELECT * FROM b WHERE b.id = a.id) l", ["a", "b"]],
    ["SELECT 1 FROM a UNION ALL SELECT 2 FROM b", ["a", "b"]],
    ["(SELECT id FROM a) EXCEPT (SELECT id FROM b)", ["a", "b"]],
    ["SELECT * FROM generate_series(1, 3) g, a", ["a"]],
    ["SELECT * FROM a AS offset, b", ["a", "b"]],
    ["WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN b ON true", ["a", "b"]],
    ["WITH x AS (SELECT * FROM users), users AS (SELECT * FROM x) SELECT * FROM users", ["users"]],
    ["WITH RECURSIVE t(n) AS (SELECT id FROM a UNION ALL SELECT n FROM t) SELECT * FROM t", ["a"]],
    ["SELECT /* FROM x /* nested */ */ * -- FROM y\nFROM a", ["a"]],
    ["SELECT 'from b; delete', $$ ' from c $$, E'it\\'s' FROM a", ["a"]],
    ["SELECT * FROM a;", ["a"]],
    ["SELECT * FROM a JOIN unnest($1::int[]) AS t(id) USING (id)", ["a"]],
    ["SELECT * FROM a JOIN unnest($1::int[]) t(id) USING (id)", ["a"]],
    ["SELECT * FROM a JOIN (VALUES (1), (2)) AS v(id) ON v.id = a.id", ["a"]],
    ["SELECT * FROM a, jsonb_to_recordset($1) AS x(b int, c text)", ["a"]],
    ["WITH x(i) AS (SELECT id FROM a), y(j) AS MATERIALIZED (SELECT i FROM x) SELECT * FROM y", ["a"]],
    ["SELECT * FROM a WHERE name LIKE 'a\\_%' AND b = 'it''s'", ["a"]],
    ["SELECT * FROM a ORDER BY id FETCH FIRST (5) ROWS ONLY".replace(" ROWS", " ROW"), ["a"]],
    ["SELECT * FROM a WHERE id BETWEEN SYMMETRIC (1) AND (5)", ["a"]],
  ])("%s reads its tables", (sql, tables) => {
    expect(only(sql)).toEqual({ kind: "read", tables });
  });
});

describe("neither cacheable nor a write:", () => {
  test.each([
    "SELECT 1",
    "SELECT now(), id FROM users",
    "SELECT id FROM users WHERE at < CURRENT_DATE",
    "SELECT id FROM users WHERE at < 'today'::date",
    "SELECT current_user FROM users",
    "SELECT nextval('ids')",
    "SELECT current_setting('app.tenant') FROM users",
    "SHOW search_path",
    "EXPLAIN SELECT * FROM users",
    "LISTEN news",
    "FETCH 5 FROM c",
    "TABLE users",
    "SELECT id FROM users UNION ALL TABLE orders",
    "SELECT id FROM users WHERE EXISTS (TABLE orders)",
    "WITH x AS (TABLE orders) SELECT * FROM x, users",
    "COPY users TO STDOUT",
    "SELECT * FROM users AS values, (WITH users AS (SELECT 1) SELECT * FROM users) q",
  ])("%s", (sql) => {
    expect(only(sql)).toMatchObject({ kind: "harmless", effects: { anything: false } });
  });

  test.each([
    ["SELECT * FROM users FOR UPDATE", "transaction"],
    ["SELECT * FROM users FOR NO KEY UPDATE SKIP LOCKED", "transaction"],
    ["SELECT * FROM users FOR KEY SHARE", "transaction"],
    ["LOCK TABLE users", "transaction"],
    ["SELECT pg_advisory_xact_lock(1)", "transaction"],
    ["SELECT pg_try_advisory_lock(1)", "session"],
  ])("%s, which holds a lock until the end of its %s", (sql, locks) => {
    expect(only(sql)).toMatchObject({ kind: "harmless", effects: { anything: false, locks } });
  });

  test.each(["SET search_path TO x", "RESET ALL", "DISCARD ALL", "SELECT set_config('a.b', 'c', true)"])(
    "%s, which changes settings",
    (sql) => {
      expect(only(sql)).toMatchObject({ kind: "harmless", effects: { settings: true } });
    },
  );
});

describe("a write", () => {
  test.each([
    [
      "INSERT INTO users (id, at) VALUES ($1, now()) ON CONFLICT (id) DO UPDATE SET at = EXCLUDED.at",
      "users",
    ],
    ["UPDATE ONLY app.users SET name = upper(name)", "users"],
    ['DELETE FROM "User" WHERE id = 1 RETURNING *', "User"],
    ["MERGE INTO users u USING x ON (u.id = x.id) WHEN NOT MATCHED THEN INSERT (a) VALUES (1)", "users"],
    ["COPY app.users (id) FROM STDIN", "users"],
  ])("%s is one of its own table", (sql, table) => {
    expect(only(sql)).toMatchObject({ kind: "write", tables: [table], effects: { anything: false } });
  });

  test.each([
    ["INSERT OR REPLACE INTO users VALUES (1)", "users"],
    ["UPDATE OR IGNORE [users] SET a = 1", "users"],
    ["REPLACE INTO `users` VALUES (1)", "users"],
  ])("of SQLite, %s, as well", (sql, table) => {
    expect(only(sql, "sqlite")).toMatchObject({
      kind: "write",
      tables: [table],
      effects: { anything: false },
    });
  });

  test.each([
    "UPDATE users SET a = my_function(a)",
    "SELECT my_function()",
    'SELECT "lower"(name) FROM users',
    "SELECT app.lower(name) FROM users",
    "SELECT * INTO copy FROM users",
    "WITH gone AS (DELETE FROM users RETURNING *) SELECT * FROM gone",
    "EXPLAIN ANALYZE DELETE FROM users",
    "CALL clean_up()",
    "DO $$ BEGIN DELETE FROM users; END $$",
    "EXECUTE prepared(1)",
    "TRUNCATE users",
    "CREATE TEMP TABLE users (id int)",
    "COMMIT PREPARED 'x'",
    "SELECT 'a\\' FROM users --'",
    "SELECT 1from users",
    "SELECT U&'d!0061t' UESCAPE '!' FROM users",
    "SELECT * FROM users -- \r DELETE",
    "SELECT * FROM users /* open",
    "SELECT 'open",
    "nonsense",
  ])("of anything may be %s", (sql) => {
    expect(only(sql)).toMatchObject(ANYTHING);
  });

  test("that is unknown may write anything", () => {
    expect(statementsIn(undefined, "postgres")).toMatchObject([ANYTHING]);
  });

  test("in a WITH clause is one of the tables it names, too", () => {
    expect(only("WITH x AS (INSERT INTO logs (a) VALUES (1) RETURNING a) SELECT * FROM x")).toMatchObject({
      tables: ["logs", "x"],
    });
  });
});

describe("a transaction", () => {
  test.each([
    ["BEGIN", { kind: "begin", isPlain: true }],
    ["START TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED", { kind: "begin", isPlain: true }],
    ["BEGIN ISOLATION LEVEL REPEATABLE READ", { kind: "begin", isPlain: false }],
    ["BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", { kind: "begin", isPlain: false }],
    ["COMMIT AND CHAIN", { kind: "commit" }],
    ["END", { kind: "commit" }],
    ["ABORT", { kind: "rollback" }],
    ["ROLLBACK WORK", { kind: "rollback" }],
    ["PREPARE TRANSACTION 'x'", { kind: "rollback" }],
    ['SAVEPOINT "S"', { kind: "savepoint", name: "s" }],
    ["ROLLBACK WORK TO SAVEPOINT s", { kind: "rollback to", name: "s" }],
    ["RELEASE s", { kind: "release", name: "s" }],
  ])("is controlled by %s", (sql, statement) => {
    expect(only(sql)).toEqual(statement);
  });

  test.each([
    [
      "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = CASE WHEN 1 THEN 2 END; DELETE FROM d; END",
      "sqlite",
    ],
    ["CREATE TEMP TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;", "sqlite"],
    ["CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END", "postgres"],
    ["CREATE PROCEDURE p() BEGIN ATOMIC INSERT INTO a VALUES (CASE WHEN true THEN 1 END); END", "postgres"],
  ] as const)("is not ended by the END of %s", (sql, dialect) => {
    expect(tokenized(sql, dialect)).toMatchObject([ANYTHING]);
    expect(tokenized(`BEGIN; ${sql.replace(/;$/, "")}; COMMIT`, dialect).map(({ kind }) => kind)).toEqual([
      "begin",
      "write",
      "commit",
    ]);
  });

  test("is ended by END after a column of that name", () => {
    expect(tokenized("CREATE TABLE t (begin int); END", "postgres").at(-1)).toEqual({ kind: "commit" });
  });

  test("may be in one text", () => {
    expect(tokenized("BEGIN; UPDATE a SET b = ';'; COMMIT;", "postgres").map(({ kind }) => kind)).toEqual([
      "begin",
      "write",
      "commit",
    ]);
  });
});

test.each(["IN orders", "NOT IN main.orders", 'IN "orders"'])(
  "in SQLite what is %s is read of a table that no FROM names",
  (test) => {
    expect(only(`SELECT * FROM users WHERE id ${test}`, "sqlite").kind).toBe("harmless");
  },
);

test("in SQLite a date that is not given is the present one", () => {
  expect(only("SELECT date() FROM users", "sqlite").kind).toBe("harmless");
  expect(only("SELECT * FROM user", "sqlite")).toEqual({ kind: "read", tables: ["user"] });
});

test.each(["total(x)", "hex(x)", "typeof(x)"])(
  "in PostgreSQL %s is a function of the application",
  (call) => {
    expect(only(`SELECT ${call} FROM a`)).toMatchObject({ kind: "write", effects: { anything: true } });
    expect(only(`SELECT ${call} FROM a`, "sqlite").kind).toBe("read");
  },
);

test.each(["postgres", "sqlite"] as const)(
  "a literal of 9 MB and 20,000 placeholders are no error in %s",
  (dialect) => {
    const long = "x".repeat(9_000_000);
    expect(only(`SELECT * FROM a WHERE b = '${long}'`, dialect).kind).toBe("read");
    const quoted = "''".repeat(1_000_000);
    expect(only(`SELECT * FROM a WHERE b = '${quoted}'`, dialect).kind).toBe("read");
    const many = Array.from({ length: 20_000 }, (_, at) => `$${at + 1}`).join(",");
    expect(only(`SELECT * FROM a WHERE b IN (${many})`, dialect).kind).toBe("read");
  },
);

test("a literal whose escapes may spell a time is not cached", () => {
  expect(only("SELECT * FROM a WHERE b = E'\\x6eow'::date").kind).toBe("harmless");
});

test("a sample of the rows is not cached, and no write", () => {
  expect(only("SELECT * FROM users TABLESAMPLE bernoulli(10)").kind).toBe("harmless");
});

describe("a function of the application may have the name of a keyword", () => {
  test.each([
    ["SELECT key(id) FROM users", "key"],
    ["SELECT * FROM users WHERE match(name)", "match"],
    ["SELECT filter(id), a FROM users", "filter"],
    ["SELECT left(name, 3) FROM users", "left"],
    ["SELECT date(at) FROM users", "date"],
    ["SELECT * FROM users JOIN set(1) AS s ON true", "set"],
    ["SELECT * FROM users JOIN join(1) AS j ON true", "join"],
    ["SELECT NOT materialized(id) FROM users", "materialized"],
    ["INSERT INTO users (id) VALUES (partition(1))", "partition"],
    ["UPDATE users SET name = over(1)", "over"],
    ["SELECT DISTINCT ON (id) own(id) FROM users", "own"],
    ['SELECT DISTINCT ON ((id), (name)) "own"(id) FROM users', "own"],
    ["COPY users FROM STDIN WHERE own(id)", "own"],
    ["COPY users (id, name) FROM STDIN WITH (FORMAT csv) WHERE id > own(1)", "own"],
  ])("%s", (sql, name) => {
    const [statement] = tokenized(sql, "postgres");
    expect(settled(statement!, (each) => (each === name ? "own" : "absent"))).toMatchObject({
      kind: "write",
      effects: { anything: true },
    });
  });

  test.each([
    "SELECT * FROM users WHERE (a, b) OVERLAPS (c, d) AND e LIKE ('x')",
    "SELECT count(*) FILTER (WHERE a) OVER (PARTITION BY (b)) FROM users GROUP BY (a) ORDER BY (a)",
    "SELECT a::varchar(3), a::vector(3) FROM users LEFT JOIN (SELECT 1) AS q ON true",
    "WITH x AS NOT MATERIALIZED (SELECT 1 FROM users) SELECT * FROM x GROUP BY GROUPING SETS ((a)), CUBE (a)",
  ])("and where it has not, nothing is called: %s", (sql) => {
    const [statement] = tokenized(sql, "postgres");
    expect(settled(statement!, () => "absent")).toEqual({ kind: "read", tables: ["users"] });
  });
});

describe("a name of PostgreSQL", () => {
  const long = "t".repeat(70);

  test("is cut after 63 bytes, as by the server", () => {
    expect(only(`SELECT * FROM ${long}`)).toMatchObject({ tables: [long.slice(0, 63)] });
    expect(only(`INSERT INTO "${long}" (id) VALUES (1)`)).toMatchObject({ tables: [long.slice(0, 63)] });
    expect(only(`DELETE FROM ${"t".repeat(62)}\u00e9`)).toMatchObject({ tables: ["t".repeat(62)] });
    expect(only(`SELECT * FROM ${long}`, "sqlite")).toMatchObject({ tables: [long] });
  });

  test("is folded in its ASCII letters only, as by the server", () => {
    expect(only("UPDATE \u00c4Pfel SET a = 1")).toMatchObject({ tables: ["\u00c4pfel"] });
    expect(only("SELECT * FROM \u00c4Pfel")).toMatchObject({ tables: ["\u00c4pfel"] });
  });
});
