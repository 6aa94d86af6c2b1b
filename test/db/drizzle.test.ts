// Sessions of drizzle over PostgreSQL, and its `cache` option; those over SQLite are with the other libraries'.
import { eq } from "drizzle-orm";
import { NodePgDatabase } from "drizzle-orm/node-postgres";
import { describe, expect, expectTypeOf, test, vi } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";
import { drizzleCache } from "../../src/db/drizzle.ts";
import { cachedDependency, testDatabase } from "./database.ts";
import { drizzle, drizzleRows, users } from "./drizzle-session.ts";
import { libraryRules } from "./library-rules.ts";

const db = testDatabase();

libraryRules("drizzle over PostgreSQL", {
  database: db,
  open: async () => drizzle(db.pool()),
  rows: drizzleRows,
});

describe("drizzle", () => {
  test("takes no connection for what is cached, and is of its class with its schema", async () => {
    const pool = db.pool({ max: 1 });
    const open = () => drizzle({ client: pool, schema: { users } });
    const session = cachedDependency(open, { cache: db.cache, tableName: "users" })();
    expect(session).toBeInstanceOf(NodePgDatabase);
    const read = () => session.query.users.findFirst({ where: eq(users.id, 1) });
    await read();
    const held = await pool.connect();
    expect(await read()).toEqual({ id: 1, name: "Ada" });
    held.release();
    expectTypeOf(cachedDependency(open, { tableName: "users" })).toEqualTypeOf<typeof open>();
  });
});

describe("drizzle's cache option", () => {
  const open = (global = false) => {
    const cache = drizzleCache({ cache: db.cache, global });
    return drizzle({ client: cache.client(db.pool()), cache });
  };
  const read = (session: Pick<NodePgDatabase, "select">) =>
    session.select().from(users).where(eq(users.id, 1));

  test("caches reads with $withCache and no others", async () => {
    const session = open();
    await read(session);
    expect(await db.cache.keys()).toEqual([]);
    expect(await read(session).$withCache()).toEqual([{ id: 1, name: "Ada" }]);
    await db.changeBehind("Bob");
    expect(await read(session).$withCache()).toEqual([{ id: 1, name: "Ada" }]);
    expect(await read(session)).toEqual([{ id: 1, name: "Bob" }]);
  });

  test("keeps everything when it is global", async () => {
    const session = open(true);
    await read(session);
    await db.changeBehind("Bob");
    expect(await read(session)).toEqual([{ id: 1, name: "Ada" }]);
    expect(await read(session).$withCache(false)).toEqual([{ id: 1, name: "Bob" }]);
  });

  test("is invalidated by commits, not by rollbacks, and not within a transaction", async () => {
    const session = open(true);
    await read(session);
    const rolledBack = session.transaction(async (transaction) => {
      await transaction.update(users).set({ name: "undone" });
      expect(await read(transaction)).toEqual([{ id: 1, name: "undone" }]);
      transaction.rollback();
    });
    await expect(rolledBack).rejects.toThrow();
    expect(db.cache.invalidated).toEqual([]);
    expect(await read(session)).toEqual([{ id: 1, name: "Ada" }]);
    await session.update(users).set({ name: "Bob" });
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    expect(await read(session)).toEqual([{ id: 1, name: "Bob" }]);
    await session.execute("DO $$ BEGIN UPDATE users SET name = 'Cy'; END $$");
    expect(await read(session)).toEqual([{ id: 1, name: "Cy" }]);
  });

  test("drops what is invalidated by hand, by table and by tag", async () => {
    const session = open();
    const page = () => read(session).$withCache({ tag: "page" });
    await page();
    await db.changeBehind("Bob");
    await session.$cache.invalidate({ tags: "other" });
    expect(await page()).toEqual([{ id: 1, name: "Ada" }]);
    await session.$cache.invalidate({ tags: ["page"] });
    expect(await page()).toEqual([{ id: 1, name: "Bob" }]);
    await db.changeBehind("Cy");
    await session.$cache.invalidate({ tables: users });
    expect(await page()).toEqual([{ id: 1, name: "Cy" }]);
  });

  test("caches only for the caller that asked, even if others read at the same moment", async () => {
    const session = open();
    const marked = () => read(session).$withCache({ tag: "page" });
    const unmarked = () => session.select({ name: users.name }).from(users);
    await Promise.all([marked().execute(), unmarked().execute(), unmarked().execute()]);
    await db.changeBehind("Bob");
    expect(await marked()).toEqual([{ id: 1, name: "Ada" }]);
    expect(await db.cache.keys()).toHaveLength(1);
  });

  test("may have its invalidate watched or replaced", async () => {
    const cache = drizzleCache({ cache: db.cache });
    const session = drizzle({ client: cache.client(db.pool()), cache: cache as never });
    const spy = vi.spyOn(session.$cache, "invalidate");
    await session.$cache.invalidate({ tables: users });
    expect(spy).toHaveBeenCalledOnce();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    spy.mockRestore();
    await session.$cache.invalidate({ tables: "orders" });
    expect(db.cache.invalidated).toHaveLength(2);
  });

  test("refuses to invalidate something that is not a table", async () => {
    const cache = drizzleCache({ cache: db.cache });
    for (const table of [{}, [5], null, { users }])
      await expect(cache.invalidate({ tables: table as never })).rejects.toMatchObject({
        code: "ARGUMENT_INVALID",
        message: expect.stringContaining("expected a drizzle table or its name"),
      });
    expect(db.cache.invalidated).toEqual([]);
  });

  test("refuses clients of other libraries and unknown options", () => {
    for (const handed of [{}, undefined, null, "postgres://ada:secret@db/shop"])
      expect(() => drizzleCache({ cache: db.cache }).client(handed as object)).toThrow(
        /^drizzleCache\(\)\.client\(\): expected a pool or client of node-postgres or mysql2, got (?!.*secret)/,
      );
    for (const wrong of [{}, { ttl: -1 }, { global: "yes" }, { tableName: "users" }]) {
      const cache = Object.keys(wrong).length === 0 ? undefined : db.cache;
      expect(() => drizzleCache({ cache, ...wrong } as never)).toThrow(ConfigError);
    }
  });
});
