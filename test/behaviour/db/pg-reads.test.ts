// Which reads of a node-postgres session are cached, and that they look as the library's own.
import pg from "pg";
import QueryStream from "pg-query-stream";
import { describe, expect, test } from "vitest";
import { tableTag } from "../../../src/db/tracking/table-tags.ts";
import { type CountingCache, cachedDependency, testDatabase } from "../../db/database.ts";

const db = testDatabase();

const READ = "SELECT id, name FROM users WHERE id = $1";

const watched = <S extends object>(session: S, tableName: string | string[] = "users"): S =>
  cachedDependency(() => session, { cache: db.cache, tableName })();

/** As pg-cursor makes them, which has no types of its own. */
interface Cursor extends pg.Submittable {
  read(rows: number): Promise<unknown[]>;
  close(): Promise<void>;
}

type Queryable = Pick<pg.ClientBase, "query">;

/** Whether a second read is answered without the database. */
async function isCached(session: Queryable, text: string | pg.QueryConfig, values?: unknown[]) {
  const before = (await session.query(text, values)).rows;
  await db.changeBehind(`changed ${Math.random()}`);
  const after = (await session.query(text, values)).rows;
  return JSON.stringify(before) === JSON.stringify(after);
}

describe("a read is cached", () => {
  test("through a pool, without a connection", async () => {
    const pool = db.pool({ max: 1 });
    const session = watched(pool);
    expect(await isCached(session, READ, [1])).toBe(true);
    const held = await pool.connect();
    expect((await session.query(READ, [1])).rows).toEqual([{ id: 1, name: "Ada" }]);
    held.release();
  });

  test("without a connection, although a hook sets up every connection of the pool", async () => {
    const pool = db.pool();
    pool.on("connect", (client) => {
      client.query("SET timezone = 'UTC'").catch(() => {});
      client.query("SET statement_timeout = 60000").catch(() => {});
    });
    let taken = 0;
    pool.on("acquire", () => taken++);
    const session = watched(pool);
    for (let round = 0; round < 10; round++) await session.query(READ, [1]);
    expect(taken).toBeLessThanOrEqual(2);
    const client = await session.connect();
    await client.query("SET timezone = 'Asia/Tokyo'");
    client.release();
    for (let round = 0; round < 3; round++) await session.query("SELECT name FROM users");
    expect(await isCached(session, READ, [1])).toBe(true);
  });

  test("whatever trace a comment around it carries", async () => {
    const session = watched(db.pool());
    const read = (id: number) =>
      session.query(`/* a ${id} */ SELECT name FROM users /*traceparent='00-${id}'*/`);
    for (let id = 0; id < 3; id++) await read(id);
    expect(await db.cache.keys()).toHaveLength(1);
    await session.query("SELECT name FROM users WHERE name <> '/*x*/'");
    await session.query("SELECT name FROM users WHERE name <> '/*y*/'");
    expect(await db.cache.keys()).toHaveLength(3);
  });

  test("of a table whose name has a dot, until it is written", async () => {
    await db.raw.query('CREATE TABLE "a.b" (id int); CREATE TABLE b (id int)');
    const session = watched(db.pool(), '"a.b"');
    for (let round = 0; round < 2; round++) await session.query('SELECT id FROM "a.b"');
    expect(await db.cache.cache.tags((await db.cache.keys())[0]!)).toEqual([tableTag('"a.b"')]);
    await session.query("INSERT INTO b VALUES (1)");
    await session.query('INSERT INTO public."a.b" VALUES (1)');
    expect(db.cache.invalidated).toEqual([["table:b"], ["table:a.b"]]);
  });

  test("through a client, a pooled client, and a transaction that only reads", async () => {
    const client = watched(await db.client());
    expect(await isCached(client, READ, [1])).toBe(true);
    const pooled = await watched(db.pool()).connect();
    expect(await isCached(pooled, "SELECT name FROM users")).toBe(true);
    await pooled.query("BEGIN");
    expect(await isCached(pooled, "SELECT name, 2 FROM users")).toBe(true);
    await pooled.query("COMMIT");
    pooled.release();
    expect(db.cache.invalidated).toEqual([]);
  });

  test("for every connection to the same database, and under the tags and the ttl of its table", async () => {
    db.cache.tables.users = { ttl: 7, tags: ["people"] };
    const first = watched(await db.client());
    await first.query(READ, [1]);
    await db.changeBehind("Bob");
    expect((await watched(db.pool()).query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Ada" });
    const [key] = await db.cache.keys();
    expect(key).toMatch(/^sql:users:/);
    expect(await db.cache.cache.tags(key!)).toEqual(["table:users", "people"]);
    expect(await db.cache.cache.ttl(key!)).toBeLessThanOrEqual(7);
    await db.cache.cache.invalidateTags("people");
    expect((await first.query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Bob" });
  });

  test("with the values of its call, whatever is done to them afterwards", async () => {
    const session = watched(db.pool());
    await session.query("INSERT INTO users VALUES (2, 'Bea') ON CONFLICT DO NOTHING");
    // The first read of a pool asks for its settings.
    await session.query("SELECT name FROM users WHERE id = $1", [0]);
    const values = [1];
    const config = { text: READ, values: [1] };
    const reads = [session.query(READ, values), session.query(config)];
    values[0] = 2;
    config.values[0] = 2;
    for (const { rows } of await Promise.all(reads)) expect(rows).toEqual([{ id: 1, name: "Ada" }]);
    expect((await session.query(READ, [1])).rows).toEqual([{ id: 1, name: "Ada" }]);
    expect((await session.query(READ, [2])).rows).toEqual([{ id: 2, name: "Bea" }]);
  });

  test("for sessions with the same tables and ttl only", async () => {
    const [all, named] = [watched(db.pool(), "*"), watched(db.pool())];
    await named.query(READ, [1]);
    await all.query(READ, [1]);
    const tags = await Promise.all((await db.cache.keys()).map((key) => db.cache.cache.tags(key)));
    expect(tags.map((each) => [...(each ?? [])].sort())).toContainEqual(["table:*", "table:users"]);
    const brief = cachedDependency(() => db.pool(), { cache: db.cache, tableName: "users", ttl: 1 })();
    await brief.query(READ, [1]);
    const ttls = await Promise.all((await db.cache.keys()).map((key) => db.cache.cache.ttl(key)));
    expect(Math.min(...ttls.map(Number))).toBeLessThanOrEqual(1);
  });

  test("of whichever tables a statement names, where all are meant", async () => {
    const session = watched(db.pool(), "*");
    const counts = async () => {
      const { rows } = await session.query(
        "SELECT count(*)::int AS n FROM users u LEFT JOIN orders o ON true",
      );
      return rows[0].n;
    };
    expect(await counts()).toBe(1);
    await db.raw.query("INSERT INTO orders VALUES (1, 1), (2, 1)");
    expect(await counts()).toBe(1);
    await session.query("INSERT INTO orders VALUES (3, 1)");
    expect(await counts()).toBe(3);
    await session.query("DO $$ BEGIN DELETE FROM orders; END $$");
    expect(await counts()).toBe(1);
  });

  test("by values, each on its own", async () => {
    const session = watched(db.pool());
    const sql = "SELECT $1::text AS v FROM users";
    const values = ["1", 1, true, null, "", "null", new Date(5), [1, 2], ["1,2"], { a: 1 }, Buffer.from("1")];
    const plain: unknown[] = [];
    for (const value of values) plain.push((await db.raw.query(sql, [value])).rows);
    for (const round of [1, 2]) {
      const rows = await Promise.all(values.map(async (value) => (await session.query(sql, [value])).rows));
      expect(rows, `round ${round}`).toEqual(plain);
    }
  });

  test("once for concurrent reads through a pool", async () => {
    const pool = db.pool();
    const session = watched(pool);
    await session.query("SELECT id FROM users");
    let taken = 0;
    pool.on("acquire", () => taken++);
    const reads = await Promise.all(Array.from({ length: 20 }, () => session.query(READ, [1])));
    expect(taken).toBe(1);
    expect(new Set(reads.map(({ rows }) => JSON.stringify(rows))).size).toBe(1);
    expect(new Set(reads.map(({ rows }) => rows)).size).toBe(20);
  });
});

describe("a cached result", () => {
  const TYPES = `SELECT 1::int4 AS i, 2::int8 AS b, 1.5::numeric AS n, 'x'::text AS t, NULL::text AS nothing,
    '2020-01-02T03:04:05Z'::timestamptz AS at, '{1,2}'::int[] AS list, '{"a":[1]}'::jsonb AS doc, true AS yes,
    decode('00ff', 'hex') AS bytes, '1 day 2 hours'::interval AS span, '(1,2)'::point AS p, 1 AS i FROM users`;

  test.each([
    ["rows of objects", {}],
    ["rows of arrays", { rowMode: "array" }],
    ["own types", { types: { getTypeParser: () => (value: string) => `<${value}>` } }],
    ["a prepared statement", { name: "all-types" }],
  ])("is what the library returns, with %s", async (_, config) => {
    const query = { text: TYPES, ...config } as pg.QueryConfig;
    const expected = await db.raw.query({ ...query });
    const session = watched(db.pool());
    for (const round of ["loaded", "cached"]) {
      const result = await session.query({ ...query });
      expect(result, round).toBeInstanceOf(pg.Result);
      expect(result.rows, round).toStrictEqual(expected.rows);
      expect(result.fields, round).toEqual(expected.fields);
      expect(result, round).toMatchObject({ command: "SELECT", rowCount: 1, oid: null });
    }
    expect((await db.cache.keys()).length).toBe(1);
  });

  test("is parsed as each client wants it, from one entry", async () => {
    const [one, two] = [await db.client(), await db.client()];
    two.setTypeParser(23, (value) => `number ${value}`);
    const sql = "SELECT id FROM users";
    expect((await watched(one).query(sql)).rows).toEqual([{ id: 1 }]);
    expect((await watched(two).query(sql)).rows).toEqual([{ id: "number 1" }]);
    expect((await db.cache.keys()).length).toBe(1);
  });

  test("belongs to its reader", async () => {
    const session = watched(db.pool());
    const read = async () => (await session.query<{ name: string }>(READ, [1])).rows[0]!;
    await read();
    (await read()).name = "changed";
    expect((await read()).name).toBe("Ada");
  });
});

describe("every form of a call works:", () => {
  test("callbacks, of clients and pools", async () => {
    for (const session of [watched(await db.client()), watched(db.pool())] as Queryable[]) {
      for (const args of [[READ, [1]], ["SELECT name FROM users"], [{ text: READ, values: [1] }]] as [
        string,
      ][]) {
        const result = await new Promise<pg.QueryResult>((resolve, reject) => {
          const returned: unknown = session.query(...args, (error: Error, found: pg.QueryResult) =>
            error ? reject(error) : resolve(found),
          );
          expect(returned).toBeUndefined();
        });
        expect(result.rows[0]).toMatchObject({ name: "Ada" });
      }
      const error = await new Promise((resolve) =>
        session.query("SELECT broken FROM users", resolve as never),
      );
      expect(error).toMatchObject({ code: "42703" });
    }
  });

  test("objects of a class with getters", async () => {
    class Statement {
      #id = 1;
      get text() {
        return READ;
      }
      get values() {
        return [this.#id];
      }
    }
    const client = watched(await db.client());
    expect(await isCached(client, new Statement())).toBe(true);
  });

  test("submittables, which are not cached but watched", async () => {
    const client = watched(await db.client());
    const query = new pg.Query("UPDATE users SET name = 'Cy'");
    expect(client.query(query)).toBe(query);
    expect((await client.query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Cy" });
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    const rows: unknown[] = [];
    const reading = client.query(new pg.Query("SELECT name FROM users")).on("row", (row) => rows.push(row));
    await new Promise((resolve) => reading.on("end", resolve));
    expect(rows).toEqual([{ name: "Cy" }]);
  });

  test("cursors and streams that write, which end when that is invalidated", async () => {
    const cursorOf = (text: string) => new QueryStream(text).cursor as Cursor;
    const slow: CountingCache = {
      ...db.cache,
      invalidateTags: async (tags) => {
        await new Promise(setImmediate);
        await db.cache.invalidateTags(tags);
      },
    };
    const client = cachedDependency(() => db.client(), { cache: slow, tableName: "users" });
    const open = async () => (await client()) as pg.Client;
    const seen: unknown[] = [];
    const invalidated = () => db.cache.invalidated.splice(0).length;
    const one = await open();
    for await (const row of one.query(new QueryStream("UPDATE users SET name = 'Bob' RETURNING name"))) {
      seen.push(row, invalidated());
    }
    expect(seen).toEqual([{ name: "Bob" }, 1]);
    const cursor = one.query(cursorOf("UPDATE users SET name = 'Cy' RETURNING name"));
    expect(await cursor.read(10)).toEqual([{ name: "Cy" }]);
    expect(invalidated()).toBe(1);
    const closed = one.query(cursorOf("UPDATE users SET name = 'Di' RETURNING name"));
    await closed.read(1);
    await closed.close();
    expect(invalidated()).toBe(1);
    const query = one.query(new pg.Query("UPDATE users SET name = 'Ed'"));
    await new Promise((resolve) => query.on("end", resolve));
    expect(invalidated()).toBe(1);
    await expect(one.query(cursorOf("SELECT nothing")).read(1)).rejects.toThrow("nothing");
    expect((await one.query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Ed" });
  });

  test("a client that is held, whose misses count once", async () => {
    const { cache } = db.cache;
    const client = await cachedDependency(() => db.client(), { cache, tableName: "users" })();
    for (const _ of ["loaded", "cached"]) await client.query(READ, [1]);
    const { totalHits, totalMisses } = await cache.getStats();
    expect([totalHits, totalMisses]).toEqual([1, 1]);
  });

  test("several statements in one text", async () => {
    const client = watched(await db.client());
    const results = (await client.query(
      "SELECT 1 AS a FROM users; SELECT 2 AS b",
    )) as unknown as pg.QueryResult[];
    expect(results.map(({ rows }) => rows)).toEqual([[{ a: 1 }], [{ b: 2 }]]);
    expect(await db.cache.keys()).toEqual([]);
  });

  test("LISTEN and NOTIFY", async () => {
    const client = watched(await db.client());
    const heard = new Promise((resolve) => client.once("notification", resolve));
    await client.query("LISTEN news");
    await client.query("NOTIFY news, 'hello'");
    expect(await heard).toMatchObject({ channel: "news", payload: "hello" });
    expect(db.cache.invalidated).toEqual([]);
  });

  test("wrong calls fail as they do in the library", async () => {
    const [client, raw] = [watched(await db.client()), db.raw];
    for (const wrong of [() => client.query(null as never), () => raw.query(null as never)])
      expect(wrong).toThrow(TypeError);
    await expect(client.query({ text: READ, values: 5 as never })).rejects.toThrow("values must be an array");
    expect((await client.query(READ, [1])).rows).toHaveLength(1);
  });
});

describe("the session", () => {
  test("is the real one in every other respect", async () => {
    const [pool, client] = [db.pool({ max: 3 }), await db.client()];
    const [watchedPool, watchedClient] = [watched(pool), watched(client)];
    expect(watchedPool).toBeInstanceOf(pg.Pool);
    expect(watchedClient).toBeInstanceOf(pg.Client);
    expect(watchedClient.constructor).toBe(pg.Client);
    expect(watchedPool.options.max).toBe(3);
    expect(watchedPool.totalCount).toBe(0);
    expect(watchedClient.escapeIdentifier('a"b')).toBe('"a""b"');
    const listener = () => {};
    expect(watchedClient.on("notice", listener)).toBe(watchedClient);
    expect(client.listeners("notice")).toEqual([listener]);
    expect(watchedClient.on).toBe(watchedClient.on);
    Object.assign(watchedClient, { note: 5 });
    expect(client).toHaveProperty("note", 5);
    expect(watched(pool)).not.toBe(pool);
  });

  test("of a pool hands out clients that go back to it as they came", async () => {
    const pool = db.pool({ max: 1 });
    const session = watched(pool);
    const first = await session.connect();
    expect(first).toBeInstanceOf(pg.Client);
    first.release();
    expect(() => first.release()).toThrow("already been released");
    const raw = await pool.connect();
    expect(raw).not.toBe(first);
    expect(raw.query).toBe(pg.Client.prototype.query);
    raw.release();
    const again = await session.connect();
    expect(again).toBe(first);
    again.release(true);
    expect(pool.totalCount).toBe(0);
    const [client, done] = await new Promise<[pg.PoolClient, () => void]>((resolve) => {
      session.connect((_, found, release) => resolve([found!, release]));
    });
    expect((await client.query(READ, [1])).rows).toHaveLength(1);
    done();
    expect(pool.idleCount).toBe(1);
  });

  test("connects as before, and says so with itself", async () => {
    const client = new pg.Client(db.server.at(db.name));
    const session = watched(client);
    await session.connect();
    expect((await session.query(READ, [1])).rows).toHaveLength(1);
    await session.end();
    await expect(session.query(READ, [2])).rejects.toThrow("not queryable");
  });

  test("keeps the order of what is asked at once", async () => {
    const client = watched(await db.client());
    const answers = await Promise.all([
      client.query(READ, [1]),
      client.query("UPDATE users SET name = 'Bob'"),
      client.query(READ, [1]),
      client.query("BEGIN"),
      client.query("UPDATE users SET name = 'Cy'"),
      client.query(READ, [1]),
      client.query("ROLLBACK"),
      client.query(READ, [1]),
    ]);
    const names = answers.flatMap(({ rows }) => (rows as { name: string }[]).map(({ name }) => name));
    expect(names).toEqual(["Ada", "Bob", "Cy", "Bob"]);
  });

  test("sends one statement at a time: pg 9 will refuse a query while another is running", async () => {
    const client = await db.client();
    const send = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
    let running = 0;
    let most = 0;
    const counted = async (...args: unknown[]): Promise<unknown> => {
      most = Math.max(most, ++running);
      return await send(...args).finally(() => running--);
    };
    Object.assign(client, { query: counted });
    const session = watched(client);
    const statements = ["BEGIN", "UPDATE users SET name = 'Bob'", READ, "COMMIT", READ, READ];
    await Promise.all(statements.map((text) => session.query(text, text === READ ? [1] : undefined)));
    expect(most).toBe(1);
  });

  test("whose only connection is taken does not wait for a read that waits for it", async () => {
    const session = watched(db.pool({ max: 1 }));
    await session.query("SELECT 1 FROM users");
    const client = await session.connect();
    const waiting = session.query(READ, [1]);
    expect((await client.query(READ, [1])).rows).toHaveLength(1);
    client.release();
    expect((await waiting).rows).toHaveLength(1);
  });
});

describe("a read goes to the database", () => {
  test("whose result is too large to be cached", async () => {
    const session = watched(db.pool());
    const rows = (length: number) =>
      session.query(`SELECT repeat(name, ${length}) AS text FROM users, generate_series(1, 100)`);
    for (let round = 0; round < 2; round++) expect((await rows(20_000)).rowCount).toBe(100);
    expect(await db.cache.keys()).toEqual([]);
    for (let round = 0; round < 2; round++) await rows(2_000);
    expect(await db.cache.keys()).toHaveLength(1);
  });

  test.each([
    ["of a table that is not named", "SELECT orders.id, name FROM users LEFT JOIN orders ON true", undefined],
    ["that locks", "SELECT name FROM users FOR SHARE", undefined],
    ["that is about the moment", "SELECT name FROM users WHERE now() > $1", ["2020-01-01"]],
    ["whose value is the moment", "SELECT name FROM users WHERE $1::timestamptz > '2020-01-01'", ["now"]],
    [
      "with a function that nobody knows",
      "SELECT name, pg_catalog.pg_stat_clear_snapshot() FROM users",
      undefined,
    ],
  ])("%s", async (_, text, values) => {
    expect(await isCached(watched(db.pool()), text, values)).toBe(false);
  });

  test.each(["BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"])(
    "in a transaction with a snapshot: %s",
    async (begin) => {
      const client = watched(await db.client());
      await client.query(READ, [1]);
      await db.changeBehind("Bob");
      await client.query(begin);
      expect((await client.query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Bob" });
      await client.query("COMMIT");
      expect((await client.query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Ada" });
      await client.query("BEGIN");
      expect((await client.query(READ, [1])).rows[0]).toEqual({ id: 1, name: "Ada" });
      await client.query("COMMIT");
    },
  );

  test("in a transaction with a snapshot by default", async () => {
    const client = watched(await db.client({ options: "-c default_transaction_isolation=serializable" }));
    expect(await isCached(client, "SELECT name FROM users")).toBe(true);
    await client.query("BEGIN");
    const { rows } = await client.query("SELECT name FROM users");
    expect(rows).toEqual((await db.raw.query("SELECT name FROM users")).rows);
  });

  test("after a write, a lock or an error in its transaction, and not after its end", async () => {
    const client = watched(await db.client(), ["users", "orders"]);
    await client.query(READ, [1]);
    await db.changeBehind("Bob");
    for (const statement of [
      "INSERT INTO orders VALUES (1, 1)",
      "SELECT id FROM users FOR UPDATE",
      "SELECT pg_advisory_xact_lock(1)",
    ]) {
      await client.query("BEGIN");
      expect((await client.query(READ, [1])).rows[0]).toMatchObject({ name: "Ada" });
      await client.query(statement);
      expect((await client.query(READ, [1])).rows[0]).toMatchObject({ name: "Bob" });
      await client.query("ROLLBACK");
      expect((await client.query(READ, [1])).rows[0]).toMatchObject({ name: "Ada" });
    }
    await client.query("BEGIN");
    await expect(client.query("SELECT broken FROM users")).rejects.toThrow();
    await expect(client.query(READ, [1])).rejects.toMatchObject({ code: "25P02" });
    await client.query("ROLLBACK");
  });

  test("of a connection with a lock of its session", async () => {
    const client = watched(await db.client());
    await client.query("SELECT pg_advisory_lock(1)");
    expect(await isCached(client, READ, [1])).toBe(false);
  });

  test("in a transaction that was begun before the session was handed out", async () => {
    const client = await db.client();
    await client.query("BEGIN");
    await client.query("UPDATE users SET name = 'Mine'");
    const session = watched(client);
    expect((await session.query(READ, [1])).rows[0]).toMatchObject({ name: "Mine" });
    await session.query("BEGIN");
    expect((await session.query(READ, [1])).rows[0]).toMatchObject({ name: "Mine" });
    await session.query("ROLLBACK");
    expect((await session.query(READ, [1])).rows[0]).toMatchObject({ name: "Ada" });
    expect((await watched(db.pool()).query(READ, [1])).rows[0]).toMatchObject({ name: "Ada" });
  });

  test("when the cache fails, and no caller sees that failure", async () => {
    const broken = {
      ...db.cache,
      get: () => Promise.reject(new Error("down")),
      getOrSet: () => Promise.reject(new Error("down")),
      invalidateTags: () => Promise.reject(new Error("down")),
    };
    for (const session of [db.pool(), await db.client()]) {
      const wrapped = cachedDependency(() => session, { cache: broken, tableName: "users" })() as pg.Pool;
      for (const name of ["Bob", "Cy"]) {
        expect((await wrapped.query("UPDATE users SET name = $1", [name])).rowCount).toBe(1);
        expect((await wrapped.query(READ, [1])).rows[0]).toMatchObject({ name });
      }
    }
  });
});
