// Long texts and values: never an error of a query, and beyond a bound neither examined nor cached.
import { beforeAll, expect, test } from "vitest";
import { settled } from "../../../src/db/sql/settled-statement.ts";
import { statementsIn } from "../../../src/db/sql/statement.ts";
import { sqlCode } from "../../../src/db/tracking/connection-state.ts";
import { readKey } from "../../../src/db/tracking/read-key.ts";

beforeAll(() => sqlCode.load());

const many = (length: number, part: (at: number) => string): string =>
  Array.from({ length }, (_, at) => part(at)).join(", ");

test.each(["postgres", "sqlite"] as const)("a literal of any length is read in %s", (dialect) => {
  const literals = ["''".repeat(400_000), "x".repeat(900_000), '"'.repeat(400_000), "\\n".repeat(400_000)];
  for (const literal of literals) {
    for (const quoted of [`'${literal}'`, `E'${literal}'`, `"${literal.replaceAll('"', '""')}"`]) {
      expect(() => statementsIn(`SELECT ${quoted} FROM users`, dialect)).not.toThrow();
    }
  }
  const [read] = statementsIn(`SELECT * FROM users WHERE name = '${"it''s ".repeat(1_000)}'`, dialect);
  expect(read).toEqual({ kind: "read", tables: ["users"] });
});

test("a long list of placeholders is a read, and one of rows a write of its table", () => {
  const [read] = statementsIn(
    `SELECT * FROM users WHERE id IN (${many(10_000, (at) => `$${at + 1}`)})`,
    "postgres",
  );
  expect(read).toEqual({ kind: "read", tables: ["users"] });
  const [write] = statementsIn(
    `INSERT INTO users (id) VALUES ${many(10_000, (at) => `(${at}, 'a')`)}`,
    "postgres",
  );
  expect(settled(write!)).toMatchObject({ kind: "write", tables: ["users"], effects: { anything: false } });
});

test.each([
  'insert into "users" (id) values ',
  "UPDATE public.users SET name = ",
  "DELETE FROM users WHERE id IN ",
])("beyond 200,000 tokens only the table is read: %s", (start) => {
  const [write] = statementsIn(`${start}${"('x'),".repeat(200_000)}`, "postgres");
  expect(write).toMatchObject({ kind: "write", tables: ["users"], effects: { anything: true } });
});

test("values that are too many or too large have no key", () => {
  const key = (values: readonly unknown[]) => readKey("f", "SELECT", values, ["users"]);
  expect(key(Array.from({ length: 10_000 }, (_, at) => `value ${at}`))).toBeDefined();
  expect(key([Array.from({ length: 50_000 }, () => 1)])).toBeUndefined();
  expect(key(Array.from({ length: 50_000 }, () => 1))).toBeUndefined();
  expect(key(["x".repeat(2_000_000)])).toBeUndefined();
  expect(readKey("f", "x".repeat(2_000_000), [], ["users"])).toBeUndefined();
  expect(key([Buffer.alloc(2_000_000)])).toBeUndefined();
  expect(key(Array.from({ length: 200 }, () => "x".repeat(9_000)))).toBeUndefined();
});
