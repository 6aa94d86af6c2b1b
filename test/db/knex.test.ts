// Sessions of knex over PostgreSQL; those over SQLite are with the other libraries'.
import type { Knex } from "knex";
import { describe, expect, expectTypeOf, test } from "vitest";
import type { SessionAdapter } from "../../src/core/db-session.ts";
import { knexSessions } from "../../src/db/knex.ts";
import { until } from "../support/until.ts";
import { cachedDependency, testDatabase } from "./database.ts";
import { knexRows, postgresKnex } from "./knex-session.ts";
import { libraryRules } from "./library-rules.ts";

const db = testDatabase();

libraryRules("knex over PostgreSQL", { database: db, open: async () => postgresKnex(db), rows: knexRows });

const watched = (session: Knex, tableName: string | string[] = "users"): Knex =>
  cachedDependency(() => session, { cache: db.cache, tableName })();

describe("knex", () => {
  test("takes no connection for what is cached", async () => {
    const session = watched(postgresKnex(db, { max: 1 }));
    const read = () => session("users").select("name");
    await read();
    const held = await session.transaction();
    expect(await read()).toEqual([{ name: "Ada" }]);
    await held.rollback();
  });

  test("answers in every way it has, from one entry or from the database", async () => {
    const session = watched(postgresKnex(db));
    for (const round of ["loaded", "cached"]) {
      expect(await session("users").pluck("name"), round).toEqual(["Ada"]);
      expect(await session("users").first(), round).toEqual({ id: 1, name: "Ada" });
      expect((await session.raw("select name from users")).rows, round).toEqual([{ name: "Ada" }]);
      expect(await session("users").count("* as n"), round).toEqual([{ n: "1" }]);
    }
    expect(await db.cache.keys()).toHaveLength(4);
    expect(await session("users").insert({ id: 2, name: "Bob" }).returning("id")).toEqual([{ id: 2 }]);
    expect(await session("users").where({ id: 2 }).delete()).toBe(1);
    expect(await session.schema.hasTable("users")).toBe(true);
  });

  test("is the real one in every other respect", async () => {
    const real = postgresKnex(db);
    const session = watched(real);
    expect(watched(real)).not.toBe(real);
    const queries: string[] = [];
    real.on("query", ({ sql }) => queries.push(sql));
    await session("users").select("id").where({ id: 1 });
    expect(queries).toEqual(['select "id" from "users" where "id" = $1']);
    expect(session("users").toString()).toBe('select * from "users"');
    expect(session.client.config).toBe(real.client.config);
    const withParams = session.withUserParams({ tenant: 1 });
    expect(await withParams("users").first("name")).toEqual({ name: "Ada" });
    await withParams("users").update({ name: "Bob" });
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    await session.destroy();
    await expect(real("users")).rejects.toThrow("Unable to acquire a connection");
  });

  test("invalidates at the commit of a transaction that began elsewhere", async () => {
    const real = postgresKnex(db);
    const [kept, undone] = [await real.transaction(), await real.transaction()];
    await watched(real)("users").first();
    const session = watched(kept);
    await session("users").update({ name: "Bob" });
    expect(await session("users").first("name")).toEqual({ name: "Bob" });
    expect(db.cache.invalidated).toEqual([]);
    await (session as Knex.Transaction).commit();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    await watched(undone)("orders").insert({ id: 1 });
    await (watched(undone) as Knex.Transaction).rollback();
    expect(db.cache.invalidated).toHaveLength(1);
    expect(await watched(real)("users").first()).toEqual({ id: 1, name: "Bob" });
  });

  test("of a statement that it does not wait for any longer is invalidated when it is over", async () => {
    const session = watched(postgresKnex(db));
    await db.raw.query("BEGIN; UPDATE users SET name = 'locked' WHERE id = 1");
    await expect(session("users").update({ name: "Bob" }).timeout(50)).rejects.toThrow("timeout");
    await db.raw.query("ROLLBACK");
    await until(() => db.cache.invalidated.length > 0, { what: "the write is over" });
    expect(await session("users").first("name")).toEqual({ name: "Bob" });
  });

  test("keeps its types", () => {
    const open = (_tenant: string): Knex => postgresKnex(db);
    expectTypeOf(cachedDependency(open, { tableName: "users" })).toEqualTypeOf<typeof open>();
    expectTypeOf(knexSessions).toEqualTypeOf<SessionAdapter<Knex>>();
  });
});
