// The key of a read: different for whatever may give another result.
import { runInNewContext } from "node:vm";
import { beforeAll, expect, test } from "vitest";
import { sqlCode } from "../../../src/db/tracking/connection-state.ts";
import { readKey } from "../../../src/db/tracking/read-key.ts";

beforeAll(() => sqlCode.load());

const keyOf = (...values: unknown[]) => readKey("session", "SELECT 1", values, ["users"]);

/** As a process in another time zone has it. */
const dateAt = (time: number, offset: number) =>
  Object.assign(new Date(time), { getTimezoneOffset: () => offset });

test("different values give different keys", () => {
  const values = [
    ...[1, "1", 1n, true, "true", null, "null", 0, -0, Number.NaN, "", "0", new Uint8Array([1]), [1], ["1"]],
    ...[[[1]], [1, 1], { a: 1 }, { a: "1" }, dateAt(1, 60), dateAt(16, 0), dateAt(1, 0), new Date(60)],
  ];
  expect(new Set(values.map((value) => keyOf(value))).size).toBe(values.length);
  expect(keyOf(1, 2)).not.toBe(keyOf(1));
  expect(keyOf(null)).toBe(keyOf(undefined));
});

test("a date of another realm, as in a test runner that isolates files, has the key of one of our own", () => {
  const foreign: unknown = runInNewContext("new Date(5)");
  expect(foreign).not.toBeInstanceOf(Date);
  expect(keyOf(foreign)).toBe(keyOf(new Date(5)));
});

test("a value without exact text, or one that denotes the current time, has no key", () => {
  class Point {}
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;
  for (const value of [
    "today",
    ["now"],
    new Point(),
    () => 1,
    Symbol("s"),
    cyclic,
    { toPostgres: () => "x" },
  ])
    expect(keyOf(value)).toBeUndefined();
});
