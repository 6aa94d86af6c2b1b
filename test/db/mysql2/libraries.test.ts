// Sessions of all libraries over MariaDB, where every transaction reads a snapshot.
import { Kysely, MysqlDialect } from "kysely";
import { createPool, type Pool } from "mysql2";
import { describe, expect, test } from "vitest";
import { drizzleCache } from "../../../src/db/drizzle.ts";
import { cachedDialect } from "../../../src/db/kysely.ts";
import { cachedPool } from "../../../src/db/mysql2.ts";
import { typeormCache } from "../../../src/db/typeorm.ts";
import { cachedDependency } from "../database.ts";
import { mysqlDrizzle, mysqlDrizzleRows } from "../drizzle-session.ts";
import { knexRows, mysqlKnex } from "../knex-session.ts";
import { kyselyRows, type Schema } from "../kysely-session.ts";
import { libraryRules } from "../library-rules.ts";
import { mysqlDatabase } from "../mysql-database.ts";
import { managerRows, mysqlSource, userSchema } from "../typeorm-session.ts";

const db = mysqlDatabase();

function callbackPool(): Pool {
  const pool = createPool({ ...db.mariadb.at(db.name), connectionLimit: 4 });
  db.atEnd(() => pool.promise().end());
  return pool;
}

const kyselyOver = (pool: Pool) => new Kysely<Schema>({ dialect: new MysqlDialect({ pool }) });

libraryRules("knex over MariaDB", { database: db, open: async () => mysqlKnex(db), rows: knexRows });
libraryRules("drizzle over MariaDB", {
  database: db,
  open: async () => mysqlDrizzle(db.pool()),
  rows: mysqlDrizzleRows,
});
libraryRules("typeorm over MariaDB", {
  database: db,
  open: () => mysqlSource(db),
  rows: (source) => managerRows(source.manager, "?"),
});
libraryRules("kysely over a pool of MariaDB", {
  database: db,
  open: async () => callbackPool(),
  rows: (pool) => kyselyRows(kyselyOver(pool)),
});

const USERS = ["table:users"];
const watched = <Session extends object>(session: Session): Session =>
  cachedDependency(() => session, { cache: db.cache, tableName: "users" })();

describe("a transaction that began elsewhere", () => {
  test("of knex invalidates when its owner commits", async () => {
    const real = mysqlKnex(db);
    const reader = knexRows(watched(mysqlKnex(db)));
    await reader.read();
    const begun = await real.transaction();
    await knexRows(watched(begun)).write("Bob");
    expect(db.cache.invalidated).toEqual([]);
    await begun.commit();
    expect(await reader.read()).toBe("Bob");
    expect(db.cache.invalidated).toEqual([USERS]);
    await real.transaction(async (transaction) => {
      await knexRows(watched(transaction)).write("Cy");
    });
    expect(await reader.read()).toBe("Cy");
  });

  test("of typeorm and drizzle invalidates when its owner commits", async () => {
    const source = await mysqlSource(db);
    const reader = managerRows(watched(await mysqlSource(db)).manager, "?");
    await reader.read();
    await source.transaction(async (manager) => {
      await managerRows(watched(manager), "?").write("Bob");
      expect(db.cache.invalidated).toEqual([]);
    });
    expect(await reader.read()).toBe("Bob");
    await mysqlDrizzle(db.pool()).transaction(async (transaction) => {
      await mysqlDrizzleRows(watched(transaction) as never).write("Cy");
      expect(await reader.read()).toBe("Bob");
    });
    expect(await reader.read()).toBe("Cy");
  });
});

describe("takes no connection for what is cached:", () => {
  test("knex", async () => {
    const session = watched(mysqlKnex(db, { max: 1 }));
    await session("users").select("name");
    const held = await session.transaction();
    expect(await session("users").select("name")).toEqual([{ name: "Ada" }]);
    await held.rollback();
    const rows: unknown[] = [];
    for await (const row of session("users").select("name").stream()) rows.push(row);
    expect(rows).toEqual([{ name: "Ada" }]);
  });

  test("kysely over cachedPool, which streams and writes as well", async () => {
    const real = createPool({ ...db.mariadb.at(db.name), connectionLimit: 1 });
    db.atEnd(() => real.promise().end());
    const session = kyselyOver(cachedPool(real, { cache: db.cache, tableName: "users" }));
    const rows = kyselyRows(session);
    await rows.read();
    const held = await real.promise().getConnection();
    expect(await rows.read()).toBe("Ada");
    held.release();
    await rows.transaction(async (transaction) => {
      await transaction.write("Bob");
      expect(db.cache.invalidated).toEqual([]);
    });
    expect(await rows.read()).toBe("Bob");
    const streamed: unknown[] = [];
    for await (const row of session.selectFrom("users").select("name").stream()) streamed.push(row);
    expect(streamed).toEqual([{ name: "Bob" }]);
    const dialect = new MysqlDialect({ pool: real });
    expect(() => cachedDialect(dialect, { cache: db.cache, tableName: "users" })).toThrow("another database");
    expect(() => cachedPool({}, { cache: db.cache, tableName: "users" })).toThrow("a pool of mysql2");
  });
});

test("the cache options of drizzle and typeorm cache what they mark", async () => {
  const cache = drizzleCache({ cache: db.cache, global: true });
  const session = mysqlDrizzle(cache.client(db.pool()));
  Object.assign(session, { $cache: cache });
  const source = await mysqlSource(db, { provider: typeormCache({ cache: db.cache }) });
  const read = async () =>
    (await source.manager.findOne(userSchema, { where: { id: 1 }, cache: true }))?.name;
  expect(await read()).toBe("Ada");
  await db.changeBehind("Bob");
  expect(await read()).toBe("Ada");
  await mysqlDrizzleRows(session).write("Cy");
  expect(db.cache.invalidated).toEqual([USERS]);
  expect(await read()).toBe("Cy");
});
