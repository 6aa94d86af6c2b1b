// How reads are stored: the lifetime and the tags of their tables.
import { describe, expect, test } from "vitest";
import type { CacheForSessions, TableSettings } from "../../../src/core/db-session.ts";
import { CachedTables } from "../../../src/db/tracking/cached-tables.ts";

const tablesOf = (names: readonly string[], tables: Record<string, TableSettings>, ttl?: number) =>
  new CachedTables({
    cache: { tables } as unknown as CacheForSessions,
    tables: names,
    ...(ttl === undefined ? {} : { ttl }),
  });

describe("the settings of a table", () => {
  test.each([
    ["users", "Users"],
    ["Users", "users"],
    ['app."User"', "user"],
    ["users", "public.users"],
  ])("%s are found under %s: schema, quotes and case do not count", (name, configured) => {
    const tables = tablesOf([name], { other: { ttl: 1 }, [configured]: { ttl: 7, tags: ["people"] } });
    const bare = name.replace(/^.*\."|"/g, "");
    expect(tables.optionsFor([bare])).toMatchObject({
      ttl: 7,
      tags: [`table:${bare.toLowerCase()}`, "people"],
    });
  });

  test("are those under exactly its name, where there are several", () => {
    const tables = tablesOf(["a.users", "users"], { "a.users": { ttl: 1 }, users: { ttl: 2 } });
    expect(tables.optionsFor(["users"]).ttl).toBe(2);
  });
});

describe("the ttl of a read", () => {
  test("is that of the read, else of the session, else the smallest of its tables", () => {
    const configured = { users: { ttl: 60 }, orders: { ttl: 5 } };
    expect(tablesOf(["users", "orders"], configured).optionsFor(["users", "orders"]).ttl).toBe(5);
    expect(tablesOf(["users"], configured, 9).optionsFor(["users"]).ttl).toBe(9);
    expect(tablesOf(["users"], configured, 9).optionsFor(["users"], { ttl: 3 }).ttl).toBe(3);
    expect(tablesOf(["logs"], configured).optionsFor(["logs"])).not.toHaveProperty("ttl");
  });
});
