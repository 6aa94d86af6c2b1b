// Sessions of typeorm over PostgreSQL, and its `cache` option; those over SQLite are with the other libraries'.
import { DataSource } from "typeorm";
import { describe, expect, expectTypeOf, test } from "vitest";
import { typeormCache, typeormSessions } from "../../src/db/typeorm.ts";
import { cachedDependency, testDatabase } from "./database.ts";
import { libraryRules } from "./library-rules.ts";
import { managerRows, postgresSource, type User, userSchema } from "./typeorm-session.ts";

const db = testDatabase();

libraryRules("typeorm over PostgreSQL", {
  database: db,
  open: () => postgresSource(db),
  rows: (source) => managerRows(source.manager),
});

const watched = <S extends object>(session: S): S =>
  cachedDependency(() => session, { cache: db.cache, tableName: "users" })();

describe("typeorm", () => {
  test("caches through repositories, managers and query builders, without a connection", async () => {
    const real = await postgresSource(db);
    const source = watched(real);
    const manager = watched(real.manager);
    expect(source).toBeInstanceOf(DataSource);
    const reads = [
      () => source.getRepository(userSchema).find(),
      () => manager.find(userSchema, { where: { id: 1 } }),
      () => source.createQueryBuilder(userSchema, "u").where("u.id = :id", { id: 1 }).getMany(),
    ];
    for (const read of reads) expect(await read()).toEqual([{ id: 1, name: "Ada" }]);
    await db.changeBehind("Bob");
    const releases = await holdAll(real);
    for (const read of reads) expect(await read()).toEqual([{ id: 1, name: "Ada" }]);
    await Promise.all(releases.map((release) => release()));
    expect(await real.getRepository(userSchema).find()).toEqual([{ id: 1, name: "Bob" }]);
  });

  test("counts the writes of entities, which come with transactions of their own", async () => {
    const source = watched(await postgresSource(db));
    const users = source.getRepository(userSchema);
    const user = await users.findOneByOrFail({ id: 1 });
    await users.save({ ...user, name: "Bob" });
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    expect(await users.findOneBy({ id: 1 })).toEqual({ id: 1, name: "Bob" });
    await users.remove(await users.findOneByOrFail({ id: 1 }));
    expect(db.cache.invalidated).toHaveLength(2);
    expect(await users.find()).toEqual([]);
  });

  test("counts the commit of a query runner that the application has made", async () => {
    const real = await postgresSource(db);
    const runner = real.createQueryRunner();
    const session = watched(runner);
    await session.startTransaction();
    await session.manager.update(userSchema, { id: 1 }, { name: "Bob" });
    expect(await session.manager.findOneBy(userSchema, { id: 1 })).toEqual({ id: 1, name: "Bob" });
    expect(db.cache.invalidated).toEqual([]);
    expect(runner.isTransactionActive).toBe(true);
    await session.commitTransaction();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    await runner.release();
    expect(session.isReleased).toBe(true);
  });

  test("of version 0.3 has managers and query runners with a `connection` instead of a `dataSource`", async () => {
    const real = await postgresSource(db);
    const runner = real.createQueryRunner();
    const members = { dataSource: { value: undefined }, connection: { value: real } };
    for (const session of [real.manager, runner]) {
      const old: typeof session = Object.create(session, members);
      expect(typeormSessions.recognises(old)).toBe(true);
      expect(typeormSessions.dialect?.(old)).toBe("postgres");
    }
    await runner.release();
  });

  test("keeps its types", () => {
    const open = async (_tenant: string): Promise<DataSource> => postgresSource(db);
    expectTypeOf(cachedDependency(open, { tableName: "users" })).toEqualTypeOf<typeof open>();
  });
});

/** Takes every connection that the pool will give. */
async function holdAll(source: DataSource): Promise<(() => Promise<void>)[]> {
  const runners = Array.from({ length: 10 }, () => source.createQueryRunner());
  await Promise.all(runners.map((runner) => runner.connect()));
  return runners.map((runner) => () => runner.release());
}

describe("typeorm's cache option", () => {
  const open = () => postgresSource(db, { provider: typeormCache({ cache: db.cache }) });
  const read = (source: DataSource, cache: boolean | { id: string; milliseconds: number } = true) =>
    source.getRepository<User>(userSchema).find({ where: { id: 1 }, cache });

  test("caches reads with cache() for the given time, until a commit", async () => {
    const source = await open();
    await read(source, false);
    expect(await db.cache.keys()).toEqual([]);
    expect(await read(source, { id: "page", milliseconds: 5_000 })).toEqual([{ id: 1, name: "Ada" }]);
    const [key = ""] = await db.cache.keys();
    expect(await db.cache.cache.ttl(key)).toBeCloseTo(5, 0);
    await db.changeBehind("Bob");
    expect(await read(source, { id: "page", milliseconds: 5_000 })).toEqual([{ id: 1, name: "Ada" }]);
    expect(await read(source, false)).toEqual([{ id: 1, name: "Bob" }]);
    await source.createQueryBuilder().update(userSchema).set({ name: "Cy" }).execute();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    expect(await read(source, { id: "page", milliseconds: 5_000 })).toEqual([{ id: 1, name: "Cy" }]);
  });

  test("is not used in a transaction that has written, and a rollback invalidates nothing", async () => {
    const source = await open();
    await read(source);
    const rolledBack = source.transaction(async (manager) => {
      await manager.update(userSchema, { id: 1 }, { name: "undone" });
      expect(await manager.find(userSchema, { cache: true })).toEqual([{ id: 1, name: "undone" }]);
      throw new Error("undo");
    });
    await expect(rolledBack).rejects.toThrow("undo");
    expect(db.cache.invalidated).toEqual([]);
    expect(await read(source)).toEqual([{ id: 1, name: "Ada" }]);
  });

  test("caches only for the caller that asked, even if others read at the same moment", async () => {
    const source = await open();
    const unmarked = () => source.getRepository<User>(userSchema).find({ select: { name: true } });
    const marked = () => read(source, { id: "page", milliseconds: 60_000 });
    await Promise.all([unmarked(), marked(), unmarked(), unmarked()]);
    await db.changeBehind("Bob");
    expect(await marked()).toEqual([{ id: 1, name: "Ada" }]);
    expect(await db.cache.keys()).toHaveLength(1);
  });

  test("refuses an invalid cache and unknown options", () => {
    expect(() => typeormCache({} as never)).toThrow("a cache with get, getOrSet and invalidateTags");
    expect(() => typeormCache({ cache: db.cache, ttl: 5 } as never)).toThrow("ttl");
  });

  test("drops what is removed by its id, and everything when it is cleared", async () => {
    const source = await open();
    const page = () => read(source, { id: "page", milliseconds: 60_000 });
    await page();
    await db.changeBehind("Bob");
    await source.queryResultCache?.remove(["other"]);
    expect(await page()).toEqual([{ id: 1, name: "Ada" }]);
    await source.queryResultCache?.remove(["page"]);
    expect(await page()).toEqual([{ id: 1, name: "Bob" }]);
    await db.changeBehind("Cy");
    await source.queryResultCache?.clear();
    expect(await page()).toEqual([{ id: 1, name: "Cy" }]);
  });
});
