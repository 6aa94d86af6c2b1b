// Which statements are reads of one row by equality.
import { describe, expect, test } from "vitest";
import { statementsIn } from "../../../src/db/sql/statement.ts";

const pointOf = (
  sql: string,
  dialect: "postgres" | "mysql" = "postgres",
): Record<string, number | string> | undefined => {
  const [statement] = statementsIn(sql, dialect);
  const point = statement?.kind === "read" ? statement.point : undefined;
  return point && Object.fromEntries(point);
};

describe("a point read", () => {
  test.each([
    ["SELECT name FROM users WHERE id = $1", { id: 0 }],
    ['select "id", "name" from "users" where "users"."id" = $1 limit $2', { id: 0 }],
    [
      'SELECT "public"."User"."id" FROM "public"."User" WHERE ("public"."User"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3',
      { id: 0 },
    ],
    ['SELECT "u"."id" AS "u_id" FROM "user" "u" WHERE (("u"."id" = $1)) LIMIT 1', { id: 0 }],
    ["SELECT * FROM lines AS l WHERE l.position = $2 AND $1 = l.order_id", { position: 1, order_id: 0 }],
    ["SELECT * FROM users WHERE id = $1 AND deleted_at IS NULL AND kind = 'x'", { id: 0, kind: "x" }],
    ["SELECT * FROM users WHERE id = 1", { id: "1" }],
    ['SELECT "id" FROM "users" AS "users" WHERE "users"."id" = \'a-1\';', { id: "a-1" }],
  ])("is %s", (sql, point) => {
    expect(pointOf(sql)).toEqual(point);
  });

  test.each([
    "SELECT count(*) FROM users WHERE id = $1",
    "SELECT * FROM users WHERE id = $1 OR name = $2",
    "SELECT * FROM users WHERE id = 'it''s'",
    "SELECT * FROM users WHERE id = E'a\\n'",
    "SELECT * FROM users WHERE id = N'a '",
    "SELECT * FROM users WHERE id = -1",
    "SELECT * FROM users WHERE id ? 1",
    "SELECT * FROM users WHERE NOT id = $1",
    "SELECT * FROM users WHERE NOT (id = $1)",
    "SELECT * FROM users WHERE id IN ($1)",
    "SELECT * FROM users WHERE id > $1",
    "SELECT * FROM users WHERE id = $1::int",
    "SELECT $1 FROM users WHERE id = $1",
    "SELECT * FROM users a, users b WHERE a.id = $1",
    "SELECT * FROM users a JOIN users b ON true WHERE a.id = $1",
    "SELECT * FROM users WHERE id = $1 UNION SELECT * FROM users WHERE name = 'x'",
    "SELECT * FROM users WHERE x BETWEEN 1 AND id = $1",
    "SELECT * FROM users WHERE id = (SELECT id FROM users WHERE name = $1)",
    "SELECT * FROM users WHERE id = $1 ORDER BY name",
    "SELECT * FROM users",
    "WITH u AS (SELECT * FROM users) SELECT * FROM u WHERE id = $1",
  ])("is not %s", (sql) => {
    expect(pointOf(sql)).toBeUndefined();
  });
});

describe("a point read of MySQL", () => {
  test.each([
    ["SELECT name FROM users WHERE id = ?", { id: 0 }],
    ["SELECT `id` FROM `users` AS `users` WHERE `users`.`ID` = 42;", { id: "42" }],
    [
      "SELECT * FROM `lines` WHERE name = ? AND (`order_id` = ? AND 1=1) LIMIT ? OFFSET ?",
      { name: 0, order_id: 1 },
    ],
  ])("is %s", (sql, point) => {
    expect(pointOf(sql, "mysql")).toEqual(point);
  });

  test.each([
    "SELECT * FROM users WHERE id = x'31'",
    "SELECT * FROM users WHERE id = '1'",
    "SELECT * FROM users WHERE id = 1 = 1",
    "SELECT * FROM users WHERE id = 1 || id = 2",
    "SELECT * FROM users WHERE id <=> 1",
    "SELECT * FROM users USE INDEX (a) WHERE id = 1",
    "SELECT * FROM users WHERE id = 1 XOR id = 2",
    "SELECT * FROM users WHERE id := 1",
  ])("is not %s", (sql) => {
    expect(pointOf(sql, "mysql")).toBeUndefined();
  });
});
