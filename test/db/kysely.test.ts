// Sessions of kysely over PostgreSQL, and a watched dialect; those over SQLite are with the other libraries'.
import { Kysely, MysqlDialect, sql } from "kysely";
import { describe, expect, expectTypeOf, test } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";
import { cachedDialect } from "../../src/db/kysely.ts";
import { cachedDependency, testDatabase } from "./database.ts";
import { kyselyRows, postgresDialect, type Schema } from "./kysely-session.ts";
import { libraryRules } from "./library-rules.ts";

const db = testDatabase();
/** The id of the type int4range. */
const RANGE = 3904;
const open = (max = 4): Kysely<Schema> => new Kysely<Schema>({ dialect: postgresDialect(db, { max }) });

libraryRules("kysely over PostgreSQL", { database: db, open: async () => open(), rows: kyselyRows });

const watched = (session: Kysely<Schema>): Kysely<Schema> =>
  cachedDependency(() => session, { cache: db.cache, tableName: "users" })();

describe("kysely", () => {
  test("takes no connection for what is cached", async () => {
    const session = watched(open(1));
    const read = () => session.selectFrom("users").selectAll().execute();
    await read();
    const held = await session.startTransaction().execute();
    expect(await read()).toEqual([{ id: 1, name: "Ada" }]);
    await held.rollback().execute();
  });

  test("through a watched dialect is a session like any other", async () => {
    const dialect = cachedDialect(postgresDialect(db), { cache: db.cache, tableName: "users" });
    const session = kyselyRows(new Kysely<Schema>({ dialect }));
    expect(await session.read()).toBe("Ada");
    await db.changeBehind("Bob");
    expect(await session.read()).toBe("Ada");
    await session.transaction(async (transaction) => {
      await transaction.write("Cy");
      expect(await transaction.read()).toBe("Cy");
      expect(db.cache.invalidated).toEqual([]);
    });
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    expect(await session.read()).toBe("Cy");
  });

  test("refuses dialects and options that it cannot watch", () => {
    const options = { cache: db.cache, tableName: "users" };
    expect(() => cachedDialect(new MysqlDialect({ pool: {} as never }), options)).toThrow(
      "PostgreSQL or SQLite",
    );
    for (const [handed, arrived] of [
      [undefined, "undefined"],
      [{}, "an object (Object)"],
      ["postgres://ada:secret@db/shop", '"postgres://***@db/shop"'],
    ] as const) {
      const message = `cachedDialect(): expected a PostgreSQL or SQLite dialect, got ${arrived}.`;
      expect(() => cachedDialect(handed as never, options)).toThrow(
        new ConfigError("ARGUMENT_INVALID", message),
      );
    }
    expect(() => cachedDialect(postgresDialect(db), { ...options, tableName: "" })).toThrow(
      "tableName must be",
    );
    expect(() => cachedDialect(postgresDialect(db), { ...options, cache: {} as never })).toThrow(
      "cache must be",
    );
  });

  test("keeps what its plugins and parsers make of rows, and nothing that is of a class", async () => {
    const session = watched(open());
    const span = sql<object>`'1 day'::interval`.as("span");
    const read = () => session.selectFrom("users").select(["id", span]).executeTakeFirstOrThrow();
    const [first, second] = [await read(), await read()];
    expect(second).toEqual(first);
    expect(Object.getPrototypeOf(second.span)).toBe(Object.getPrototypeOf(first.span));
    expect(await db.cache.keys()).toEqual([]);
    const at = sql<Date>`'2020-01-02T03:04:05Z'::timestamptz`.as("at");
    for (const round of ["loaded", "cached"]) {
      const row = await session.selectFrom("users").select(at).executeTakeFirstOrThrow();
      expect(row.at, round).toStrictEqual(new Date("2020-01-02T03:04:05Z"));
    }
    expect(await db.cache.keys()).toHaveLength(1);
  });

  test("invalidates at the commit of a transaction that began elsewhere", async () => {
    const real = open();
    const begun = await real.startTransaction().execute();
    const session = watched(begun) as typeof begun;
    await session.updateTable("users").set({ name: "Bob" }).execute();
    expect(await session.selectFrom("users").select("name").execute()).toEqual([{ name: "Bob" }]);
    expect(db.cache.invalidated).toEqual([]);
    await session.commit().execute();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    expect(await db.cache.keys()).toEqual([]);
  });

  test("keeps rows apart that pools parse differently, whatever the type", async () => {
    const parsed = (found: string) => ({
      getTypeParser: (oid: number) => (value: string) => (oid === RANGE ? `${found} ${value}` : value),
    });
    await db.raw.query("CREATE TABLE spans (span int4range); INSERT INTO spans VALUES ('[1,2)')");
    for (const name of ["one", "two", "one"]) {
      const dialect = postgresDialect(db, { types: parsed(name) as never });
      const session = cachedDependency(() => new Kysely<never>({ dialect }), {
        cache: db.cache,
        tableName: "*",
      })();
      const { rows } = await sql<{ span: string }>`select span from spans`.execute(session);
      expect(rows).toEqual([{ span: `${name} [1,2)` }]);
    }
    expect(await db.cache.keys()).toHaveLength(2);
  });

  test("keeps its types, and is of its class", async () => {
    const session = watched(open());
    expect(session).toBeInstanceOf(Kysely);
    expectTypeOf(cachedDependency(open, { tableName: "users" })).toEqualTypeOf<typeof open>();
    expectTypeOf(cachedDialect).returns.toHaveProperty("createDriver");
    expect((await session.introspection.getTables()).map(({ name }) => name).sort()).toEqual([
      "orders",
      "users",
    ]);
  });
});
