// Sessions of postgres.js over PostgreSQL.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres, { type Sql, type TransactionSql } from "postgres";
import { describe, expect, test } from "vitest";
import { runFolder } from "../support/run-folder.ts";
import { until } from "../support/until.ts";
import { cachedDependency, testDatabase } from "./database.ts";
import { libraryRules, type UserSession, type UserTransaction } from "./library-rules.ts";

const db = testDatabase();

function open(options: postgres.Options<Record<string, postgres.PostgresType>> = {}): Sql {
  const { host, port, user, database } = db.server.at(db.name);
  const sql = postgres({ host, port, user, database, max: 4, onnotice: () => {}, ...options } as never);
  // At once, it would leave the library's own question about types unhandled.
  db.atEnd(() => sql.end({ timeout: 5 }));
  return sql as Sql;
}

const watched = <Session>(sql: Session, tableName: string | string[] = "users"): Session =>
  cachedDependency(() => sql as object, { cache: db.cache, tableName })() as Session;

type Executor = Sql | TransactionSql;

const nameOf = async (sql: Executor): Promise<unknown> =>
  (await sql`SELECT name FROM users WHERE id = ${1}`)[0]?.name;

function rows(sql: Sql): UserSession {
  const row = (executor: Executor): UserTransaction => ({
    read: async () => String(await nameOf(executor)),
    write: (name) => executor`UPDATE users SET ${executor({ name })} WHERE id = 1`,
    writeRaw: (name) => executor.unsafe("UPDATE users SET name = $1 WHERE id = $2", [name, 1]),
    insertAgain: () => executor`INSERT INTO users ${executor([{ id: 1, name: "again" }])}`,
    nested: (work) => (executor as TransactionSql).savepoint((inner) => work(row(inner))),
  });
  const transaction: UserSession["transaction"] = (work) => sql.begin((inner) => work(row(inner)));
  const snapshot: UserSession["transaction"] = (work) =>
    sql.begin("isolation level repeatable read", (inner) => work(row(inner)));
  return { ...row(sql), transaction, snapshot };
}

libraryRules("postgres.js", { database: db, open: async () => open(), rows });

describe("postgres.js", () => {
  test("takes no connection for what is cached", async () => {
    const sql = watched(open({ max: 2 }));
    await nameOf(sql);
    const held = [await sql.reserve(), await sql.reserve()];
    expect(await nameOf(sql)).toBe("Ada");
    for (const each of held) each.release();
  });

  test("returns from the cache what the library would return, with the parsers of each", async () => {
    await db.raw.query(`CREATE TABLE things (id bigint, tags text[], at timestamptz, j jsonb, b bytea, flag_set boolean, n int);
      INSERT INTO things VALUES (9007199254740993, '{a,"b c"}', '2020-01-02', '{"a":[1]}', '\\x00ff', true, NULL)`);
    const all = [{}, { types: { bigint: postgres.BigInt } }, { transform: postgres.camel }];
    for (const options of all) {
      const real = open(options as never);
      const sql = watched(real, "things");
      const bare = await real`SELECT * FROM things`;
      for (const round of ["loaded", "cached"]) {
        const seen = await sql`SELECT * FROM things`;
        expect([...seen], round).toEqual([...bare]);
        expect([seen.count, seen.command, seen.columns.map(({ name, type }) => [name, type])]).toEqual([
          bare.count,
          bare.command,
          bare.columns.map(({ name, type }) => [name, type]),
        ]);
      }
      expect(await sql`SELECT n FROM things`.values()).toEqual(await real`SELECT n FROM things`.values());
    }
  });

  test("tells fragments, lists and typed values apart", async () => {
    await db.raw.query("INSERT INTO users VALUES (2, 'Bob')");
    const sql = watched(open());
    const names = async (ids: number[], by = sql`id`) => {
      const found = sql`SELECT name FROM ${sql("users")} WHERE id IN ${sql(ids)} ORDER BY ${by}`;
      ids[0] = 2;
      return (await found).map(({ name }) => name);
    };
    for (const _ of ["loaded", "cached"]) {
      expect(await names([1])).toEqual(["Bob"]);
      expect(await names([1, 2], sql`id DESC`)).toEqual(["Bob"]);
      expect(await sql`SELECT name FROM users WHERE id = ${sql.typed(1, 23)}`).toHaveLength(1);
    }
    const values = [1];
    const reading = sql.unsafe("SELECT name FROM users WHERE id = $1", values);
    const running = reading.execute();
    await Promise.resolve();
    await Promise.resolve();
    values[0] = 2;
    expect((await running)[0]?.name).toBe("Ada");
    expect((await sql.unsafe("SELECT name FROM users WHERE id = $1", [2]))[0]?.name).toBe("Bob");
    expect((await sql.unsafe("SELECT name FROM users WHERE id = $1", [1]))[0]?.name).toBe("Ada");
  });

  test("sees what a reserved connection commits", async () => {
    const sql = watched(open());
    expect(await nameOf(sql)).toBe("Ada");
    const reserved = await sql.reserve();
    await reserved`BEGIN`;
    await reserved`UPDATE users SET name = 'Bob'`;
    expect(await nameOf(reserved)).toBe("Bob");
    expect(await nameOf(sql)).toBe("Ada");
    await reserved`COMMIT`;
    expect(await nameOf(sql)).toBe("Bob");
    reserved.release();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
  });

  test("sees what a unit of work commits with the library's own objects", async () => {
    const real = open();
    const sql = watched(real);
    expect(await nameOf(sql)).toBe("Ada");
    async function* reserving() {
      const reserved = await real.reserve();
      await reserved`BEGIN`;
      yield reserved;
      await reserved`COMMIT`;
      reserved.release();
    }
    for await (const inner of cachedDependency(reserving, { cache: db.cache, tableName: "users" })()) {
      await inner`UPDATE users SET name = ${"Bob"}`;
      expect(await nameOf(sql)).toBe("Ada");
    }
    expect(await nameOf(sql)).toBe("Bob");
    await real.begin(async (transaction) => {
      await watched(transaction)`UPDATE users SET name = ${"Cy"}`;
    });
    expect(await nameOf(sql)).toBe("Cy");
  });

  test("stores nothing of a transaction that was left open in the pool", async () => {
    const real = open({ max: 2 });
    const [left, held] = [await real.reserve(), await real.reserve()];
    await left`BEGIN`;
    await left`UPDATE users SET name = 'dirty'`;
    left.release();
    expect(await nameOf(watched(real))).toBe("dirty");
    expect(await db.cache.keys()).toEqual([]);
    held.release();
  });

  test("with one connection, sees a transaction that begins by a statement", async () => {
    const one = watched(open({ max: 1 }));
    const sql = watched(open());
    expect(await nameOf(sql)).toBe("Ada");
    await one`BEGIN`;
    await one`UPDATE users SET name = 'Bob'`;
    expect(await nameOf(one)).toBe("Bob");
    expect(await nameOf(sql)).toBe("Ada");
    await one`COMMIT`;
    expect(await nameOf(sql)).toBe("Bob");
    await one.begin((inner) => [inner`UPDATE users SET name = 'Cy'`]);
    expect(await nameOf(sql)).toBe("Cy");
    await expect(sql`BEGIN`).rejects.toThrow("Only use sql.begin");
  });

  test("streams past the cache, and invalidates what they write before they end", async () => {
    const sql = watched(open());
    const read = async () => (await sql`SELECT count(*)::int AS n FROM users`)[0]?.n;
    expect(await read()).toBe(1);
    await pipeline(
      Readable.from(["2\tBob\n", "3\tCy\n"]),
      await sql`COPY users (id, name) FROM STDIN`.writable(),
    );
    expect(await read()).toBe(3);
    const found: unknown[] = [];
    for await (const batch of sql`INSERT INTO users VALUES (4, 'Di') RETURNING name`.cursor(1)) {
      found.push(...batch);
    }
    expect(found).toEqual([{ name: "Di" }]);
    expect(await read()).toBe(4);
    await sql`SELECT name FROM users ORDER BY id`.forEach((row) => {
      found.push(row);
    });
    expect(found).toHaveLength(5);
    expect((await sql`SELECT name FROM users`.describe()).columns).toHaveLength(1);
    let copied = "";
    for await (const chunk of await sql`COPY users TO STDOUT`.readable()) copied += chunk;
    expect(copied.split("\n")).toHaveLength(5);
    expect(await read()).toBe(4);
  });

  test("reads files, and leaves the rest to the library", async () => {
    const sql = watched(open());
    const file = join(runFolder(), "query.sql");
    await writeFile(file, "SELECT name FROM users");
    for (const _ of ["loaded", "cached"]) expect(await sql.file(file)).toEqual([{ name: "Ada" }]);
    expect(await db.cache.keys()).toHaveLength(1);
    await expect(sql.file(`${file}.none`)).rejects.toThrow("ENOENT");
    const heard: string[] = [];
    await sql.listen("news", (message) => heard.push(message));
    await sql.notify("news", "hello");
    await until(async () => heard.length > 0, { what: "the message arrives" });
    expect(heard).toEqual(["hello"]);
    await expect(sql`SELECT ${undefined as never} FROM users`).rejects.toThrow("Undefined values");
    await expect(sql`SELECT nothing FROM users`).rejects.toMatchObject({ code: "42703" });
    const slow = sql`SELECT pg_sleep(60) FROM users`;
    const cancelled = expect(slow).rejects.toMatchObject({ code: "57014" });
    // Earlier, the server might receive the cancellation before the query.
    const isRunning = async () =>
      (await sql`SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(60)%' AND state = 'active'`)
        .length > 0;
    await until(isRunning, { what: "the query is running" });
    slow.cancel();
    await cancelled;
    expect(await nameOf(sql)).toBe("Ada");
    await sql.end();
    await expect(sql`SELECT 1`).rejects.toMatchObject({ code: "CONNECTION_ENDED" });
  });
});
