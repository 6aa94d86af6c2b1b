// What is concluded from the text of a statement of MySQL and MariaDB.
import { describe, expect, test } from "vitest";
import { writtenByMysqlTrigger } from "../../../src/db/sql/routine-body.ts";
import { settled } from "../../../src/db/sql/settled-statement.ts";
import { type Statement, statementsIn } from "../../../src/db/sql/statement.ts";

const only = (sql: string): Statement => {
  const statements = statementsIn(sql, "mysql");
  expect(statements).toHaveLength(1);
  return settled(statements[0]!);
};

const ANYTHING = { kind: "write", effects: { anything: true, commits: true } };

describe("a plain read", () => {
  test.each([
    ["SELECT * FROM users", ["users"]],
    ["SELECT * FROM `users` u JOIN app.`Order Items` AS i ON true", ["users", "Order Items"]],
    ["SELECT * FROM a STRAIGHT_JOIN b, c WHERE x IN (1, 2)", ["a", "b", "c"]],
    ["SELECT STRAIGHT_JOIN * FROM a, b", ["a", "b"]],
    ["SELECT * FROM a # FROM x\n, b -- FROM y\n, c", ["a", "b", "c"]],
    ["SELECT 1--1 FROM a", ["a"]],
    ["SELECT /* FROM x */ /*+ MAX_EXECUTION_TIME(5) */ * FROM a", ["a"]],
    [`SELECT 'it\\'s FROM x', "FROM y", 'it''s', "it""s" FROM a`, ["a"]],
    ["SELECT * FROM a USE INDEX (i) JOIN b FORCE INDEX (j) ON true", ["a", "b"]],
    ["SELECT * FROM a PARTITION (p0, p1), b", ["a", "b"]],
    ["SELECT x, COUNT(*) FROM a GROUP BY x WITH ROLLUP", ["a"]],
    ["SELECT * FROM a WHERE MATCH (t) AGAINST ('x' IN BOOLEAN MODE) LIMIT 5, 10", ["a"]],
    ["SELECT IFNULL(x, DATE_ADD(y, INTERVAL 1 DAY)), UNIX_TIMESTAMP(z) FROM a", ["a"]],
    ["SELECT GROUP_CONCAT(DISTINCT x ORDER BY x SEPARATOR ',') FROM a", ["a"]],
    ["SELECT CAST(x AS CHAR(10)), CONVERT(y USING utf8mb4), DATE(z), YEAR(z) FROM a", ["a"]],
    ["SELECT * FROM a WHERE x REGEXP 'b' XOR y <=> NULL", ["a"]],
    ["WITH x(i) AS (SELECT id FROM a) SELECT * FROM x JOIN b", ["a", "b"]],
    ["(SELECT 1 FROM a) UNION (SELECT 2 FROM b) ORDER BY 1", ["a", "b"]],
    ["SELECT j.* FROM a, JSON_TABLE(x, '$[*]' COLUMNS (i INT PATH '$')) AS j", ["a"]],
    ["select `t`.`users`.`id` AS `id` from (`t`.`users` join `t`.`orders` on(1 = 1))", ["users", "orders"]],
    ["SELECT INSERT(x, 1, 1, 'y'), COLUMN_JSON(z) FROM a", ["a"]],
    ["SELECT $a, today FROM a WHERE name = 'now'", ["a"]],
  ])("%s reads its tables", (sql, tables) => {
    expect(only(sql)).toEqual({ kind: "read", tables });
  });

  test("names the row that placeholders select", () => {
    const point = new Map([
      ["id", 0],
      ["b", 1],
    ]);
    expect(only("SELECT * FROM a WHERE id = ? AND b = ?;")).toEqual({ kind: "read", tables: ["a"], point });
  });
});

describe("neither cacheable nor a write:", () => {
  test.each([
    "SELECT 1",
    "SELECT NOW() FROM users",
    "SELECT UNIX_TIMESTAMP() FROM users",
    "SELECT CURRENT_TIMESTAMP, id FROM users",
    "SELECT LAST_INSERT_ID(), id FROM users",
    "SELECT @x, id FROM users",
    "SELECT @x := id FROM users",
    "SELECT @@sql_mode, id FROM users",
    "SELECT id FROM users WHERE id = @`x`",
    "SELECT SQL_CALC_FOUND_ROWS * FROM users",
    "SELECT SQL_NO_CACHE * FROM users",
    "SELECT FOUND_ROWS() FROM users",
    "SELECT RAND(), UUID() FROM users",
    "SELECT NEXT VALUE FOR s, id FROM users",
    "SELECT id INTO @x FROM users",
    "SELECT * FROM users INTO OUTFILE '/tmp/x'",
    "SELECT * FROM mysql.user",
    "SELECT * FROM information_schema.TABLES, users",
    "SELECT * FROM users FORCE INDEX FOR ORDER BY (i), orders",
    "SELECT * FROM users FOR SYSTEM_TIME AS OF '2020-01-01', orders",
    'SELECT * FROM "users"',
    "SHOW TABLES",
    "DESCRIBE users",
    "EXPLAIN SELECT * FROM users",
    "DO SLEEP(1)",
    "HANDLER users READ FIRST",
    "PREPARE s FROM 'DELETE FROM users'",
  ])("%s", (sql) => {
    expect(only(sql)).toMatchObject({ kind: "harmless", effects: { anything: false } });
  });

  test.each([
    ["SELECT * FROM users FOR UPDATE", "transaction"],
    ["SELECT * FROM users FOR SHARE SKIP LOCKED", "transaction"],
    ["SELECT * FROM users LOCK IN SHARE MODE", "transaction"],
    ["SELECT GET_LOCK('a', 1)", "session"],
    ["DO GET_LOCK('a', 1)", "session"],
  ])("%s, which holds a lock until the end of its %s", (sql, locks) => {
    expect(only(sql)).toMatchObject({ kind: "harmless", effects: { anything: false, locks } });
  });

  test.each([
    ["SET time_zone = '+02:00'", undefined],
    ["SET @x = 1", undefined],
    ["SET NAMES utf8mb4", undefined],
    ["USE other", undefined],
    ["SET autocommit = 1", true],
    ["SET @@session.autocommit = 0", true],
  ])("%s, which changes settings", (sql, commits) => {
    const { effects } = only(sql) as Extract<Statement, { kind: "harmless" }>;
    expect([effects.settings, effects.commits]).toEqual([true, commits]);
  });

  test("FLUSH STATUS, after which nobody can tell whether there are temporary tables", () => {
    expect(only("FLUSH LOCAL STATUS")).toMatchObject({ effects: { locks: "session" } });
  });

  test("LOCK TABLES, which commits and holds a lock, and UNLOCK TABLES", () => {
    expect(only("LOCK TABLES users WRITE")).toMatchObject({ effects: { commits: true, locks: "session" } });
    expect(only("UNLOCK TABLES")).toMatchObject({ kind: "harmless", effects: { commits: true } });
  });
});

describe("a write", () => {
  test.each([
    [
      "INSERT INTO users (id, name) VALUES (1, UPPER('a')) ON DUPLICATE KEY UPDATE name = VALUES(name)",
      ["users"],
    ],
    ["INSERT users VALUES (1)", ["users"]],
    ["INSERT LOW_PRIORITY IGNORE INTO app.`users` SET id = 1", ["users"]],
    ["INSERT INTO users (id) SELECT id FROM orders", ["users"]],
    ["REPLACE INTO users VALUES (1, NOW())", ["users"]],
    ["REPLACE users VALUES (1)", ["users"]],
    ["INSERT INTO history VALUES (1)", ["history"]],
    ["REPLACE quick (id) VALUES (1)", ["quick"]],
    ["UPDATE quick SET id = 1", ["quick"]],
    ["DELETE HISTORY FROM history", ["history"]],
    ["UPDATE IGNORE users SET name = LOWER(name) ORDER BY id LIMIT 1", ["users"]],
    ["UPDATE users u JOIN orders AS o ON o.user_id = u.id SET o.x = 1", ["users", "orders"]],
    ["UPDATE users, app.orders SET orders.x = 1", ["users", "orders"]],
    ["DELETE FROM users WHERE id = 1 LIMIT 1", ["users"]],
    ["DELETE QUICK FROM users PARTITION (p0)", ["users"]],
    ["DELETE users, orders FROM users JOIN orders WHERE true", ["users", "orders"]],
    ["DELETE FROM users USING users JOIN orders USING (id) WHERE true", ["users", "orders"]],
    ["DELETE FROM o USING orders AS o", ["o", "orders"]],
    ["WITH x AS (SELECT 1) UPDATE users JOIN x SET name = 'a'", ["users", "x"]],
  ])("%s is one of its own tables", (sql, tables) => {
    const write = only(sql);
    expect(write).toMatchObject({ kind: "write", effects: { anything: false } });
    expect((write as { readonly tables: readonly string[] }).tables).toEqual(tables);
  });

  test.each([
    "CALL change()",
    "EXECUTE s",
    "EXECUTE IMMEDIATE 'DELETE FROM users'",
    "BEGIN NOT ATOMIC UPDATE users SET name = 'a'; IF true THEN COMMIT; END IF; END",
    "SELECT * FROM users /*! FOR UPDATE */",
    "SELECT * FROM users /*M! , orders */",
    "/*!50000 DELETE */ FROM users",
    "CREATE TABLE x (id int)",
    "CREATE TRIGGER t AFTER INSERT ON a FOR EACH ROW BEGIN INSERT INTO b VALUES (1); DELETE FROM c; END",
    "SET STATEMENT max_statement_time = 1 FOR UPDATE users SET name = 'a'",
    "ANALYZE UPDATE users SET name = 'a'",
    "EXPLAIN ANALYZE SELECT * FROM users",
    "DESC ANALYZE UPDATE users SET name = 'a'",
    "XA COMMIT 'x'",
    "START SLAVE",
    "FLUSH TABLES",
    'UPDATE "users" SET name = 1',
    `SELECT "a\\" FROM users WHERE b = "`,
    "GRANT SELECT ON users TO ada",
  ])("%s may be one of anything, and may commit", (sql) => {
    expect(only(sql)).toMatchObject(ANYTHING);
  });

  test.each([
    ["TRUNCATE TABLE users", "users"],
    ["ALTER TABLE users ADD x int", "users"],
    ["DROP TABLE IF EXISTS a, users", "users"],
    ["RENAME TABLE users TO others", "others"],
    ["LOAD DATA LOCAL INFILE 'x' INTO TABLE users", "users"],
  ])("%s is one of its table as well", (sql, table) => {
    expect(only(sql)).toMatchObject(ANYTHING);
    expect((only(sql) as { readonly tables: readonly string[] }).tables).toContain(table);
  });

  test.each([
    "SELECT mine(id) FROM users",
    "SELECT app.count(id) FROM users",
    "SELECT `lower`(id) FROM users",
  ])("%s calls a function of the application", (sql) => {
    expect(only(sql)).toMatchObject({ kind: "write", effects: { anything: true } });
  });
});

test.each([
  ["BEGIN", { kind: "begin" }],
  ["START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", { kind: "begin" }],
  ["COMMIT AND CHAIN", { kind: "commit" }],
  ["ROLLBACK", { kind: "rollback" }],
  ["SAVEPOINT `A`", { kind: "savepoint", name: "a" }],
  ["ROLLBACK WORK TO SAVEPOINT a", { kind: "rollback to", name: "a" }],
  ["RELEASE SAVEPOINT a", { kind: "release", name: "a" }],
])("%s is part of a transaction", (sql, expected) => {
  expect(only(sql)).toMatchObject(expected);
});

test("several statements of a text are taken one by one, those of a compound statement together", () => {
  expect(statementsIn("BEGIN; DELETE FROM a; COMMIT", "mysql").map(({ kind }) => kind)).toEqual([
    "begin",
    "write",
    "commit",
  ]);
  expect(statementsIn("BEGIN NOT ATOMIC DELETE FROM a; ROLLBACK; END", "mysql")).toHaveLength(1);
});

describe("the body of a trigger", () => {
  test.each([
    ["INSERT INTO log (a) VALUES (NEW.id)", ["log"]],
    [
      "BEGIN UPDATE a JOIN b SET b.x = 1; IF NEW.x THEN DELETE FROM c WHERE id = 1; END IF; END",
      ["a", "b", "c"],
    ],
    ["SET NEW.name = UPPER(NEW.name)", []],
    ["REPLACE INTO `log` VALUES (LOWER(NEW.name))", ["log"]],
  ])("%s writes its tables", (body, tables) => {
    expect(writtenByMysqlTrigger(body)).toEqual({ tables, anything: false });
  });

  test.each(["CALL change()", "SET NEW.x = mine(1)", "/*! DELETE FROM a */"])(
    "%s may write anything",
    (body) => {
      expect(writtenByMysqlTrigger(body)).toMatchObject({ anything: true });
    },
  );
});
