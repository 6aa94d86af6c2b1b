// What invalidates: commits, once, after they have succeeded, and whatever may have been one.
import { createRequire } from "node:module";
import pg from "pg";
import { beforeEach, describe, expect, test } from "vitest";
import type { CachedDependency } from "../../../src/functions/dependency.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { cachedDependencyWith, testDatabase } from "../../db/database.ts";
import { until } from "../../support/until.ts";

const db = testDatabase({ max_prepared_transactions: "5" });

const READ = "SELECT id, name FROM users WHERE id = $1";
const USERS = ["table:users"];

let clock: ManualClock;
let cachedDependency: CachedDependency;
beforeEach(() => {
  clock = new ManualClock();
  cachedDependency = cachedDependencyWith(clock);
});

const watched = <S extends object>(session: S, tableName: string | string[] = "users"): S =>
  cachedDependency(() => session, { cache: db.cache, tableName })();

const nameIn = async (session: Pick<pg.ClientBase, "query">): Promise<string> =>
  (await session.query<{ name: string }>(READ, [1])).rows[0]!.name;

describe("an autocommitted write", () => {
  test.each([
    ["UPDATE users SET name = 'Bob'", USERS],
    ["INSERT INTO orders VALUES (1, 1)", ["table:orders"]],
    ["INSERT INTO users VALUES (2, 'Bob') ON CONFLICT DO NOTHING", USERS],
    [
      "WITH x AS (UPDATE users SET name = 'Bob' RETURNING id) INSERT INTO orders SELECT id, 1 FROM x",
      undefined,
    ],
    ["TRUNCATE users", undefined],
    ["DO $$ BEGIN UPDATE users SET name = 'Bob'; END $$", undefined],
    ["DROP TABLE users", undefined],
    ["UPDATE users SET name = 'a'; UPDATE users SET name = 'b'", USERS],
  ])("%s invalidates what it wrote, once", async (sql, tags) => {
    for (const session of [watched(await db.client()), watched(db.pool())]) {
      db.cache.invalidated.length = 0;
      await session.query(sql).catch(() => {});
      if (sql.startsWith("DROP")) break;
      await db.raw.query("DELETE FROM orders");
    }
    expect(db.cache.invalidated).toHaveLength(1);
    if (tags === undefined) expect(db.cache.invalidated[0]).toEqual(expect.arrayContaining(USERS));
    else expect(db.cache.invalidated[0]).toEqual(tags);
  });

  test("that the database refuses invalidates nothing", async () => {
    const session = watched(await db.client());
    await expect(session.query("INSERT INTO users VALUES (1, 'again')")).rejects.toMatchObject({
      code: "23505",
    });
    await expect(session.query("UPDATE users SET name = 'x'; SELECT 1 / 0")).rejects.toThrow("division");
    expect(db.cache.invalidated).toEqual([]);
  });

  test("resolves only after the cache has confirmed the invalidation, as does a commit", async () => {
    let confirm: () => void = () => {};
    let asked = 0;
    const slow = {
      ...db.cache,
      invalidateTags: () => {
        asked++;
        return new Promise<void>((resolve) => {
          confirm = resolve;
        });
      },
    };
    const client = await db.client();
    const session = cachedDependency(() => client, { cache: slow, tableName: "users" })();
    await session.query("BEGIN");
    for (const [at, sql] of [
      "UPDATE users SET name = 'Bob'; COMMIT",
      "UPDATE users SET name = 'Cy'",
    ].entries()) {
      let isTold = false;
      const writing = session.query(sql).then(() => {
        isTold = true;
      });
      await until(() => asked === at + 1, { what: "the invalidation is asked for" });
      await db.raw.query("SELECT 1");
      expect(isTold).toBe(false);
      confirm();
      await writing;
    }
  });

  test("has invalidated before its caller gets the result", async () => {
    const [writer, reader] = [watched(db.pool()), watched(db.pool())];
    for (let round = 0; round < 5; round++) {
      await nameIn(reader);
      await writer.query("UPDATE users SET name = $1", [`name ${round}`]);
      expect(await nameIn(reader)).toBe(`name ${round}`);
    }
  });
});

describe("a transaction", () => {
  test("invalidates everything it wrote once, at its commit", async () => {
    const client = watched(await db.client());
    await client.query("BEGIN");
    await client.query("UPDATE users SET name = 'Bob'");
    await client.query("INSERT INTO orders VALUES (1, 1)");
    await client.query("UPDATE users SET name = 'Cy'");
    expect(db.cache.invalidated).toEqual([]);
    await client.query("COMMIT");
    expect(db.cache.invalidated).toEqual([["table:users", "table:orders"]]);
    await client.query("BEGIN");
    await client.query("COMMIT");
    expect(db.cache.invalidated).toHaveLength(1);
  });

  test("that is rolled back invalidates nothing", async () => {
    const client = watched(await db.client());
    await client.query("BEGIN");
    await client.query("UPDATE users SET name = 'Bob'");
    await client.query("ROLLBACK");
    expect(db.cache.invalidated).toEqual([]);
    expect(await nameIn(client)).toBe("Ada");
  });

  test("with savepoints invalidates what is left of it, at the outermost commit", async () => {
    const client = watched(await db.client());
    await client.query("BEGIN");
    await client.query("SAVEPOINT a");
    await client.query("UPDATE users SET name = 'Bob'");
    await client.query("ROLLBACK TO a");
    await client.query("SAVEPOINT b");
    await client.query("INSERT INTO orders VALUES (1, 1)");
    await client.query("RELEASE b");
    expect(db.cache.invalidated).toEqual([]);
    await client.query("COMMIT");
    expect(db.cache.invalidated).toEqual([["table:orders"]]);
  });

  test("that had failed is rolled back by its COMMIT and invalidates nothing", async () => {
    const client = watched(await db.client());
    await client.query("BEGIN");
    await client.query("UPDATE users SET name = 'Bob'");
    await expect(client.query("SELECT 1 / 0")).rejects.toThrow();
    expect((await client.query("COMMIT")).command).toBe("ROLLBACK");
    expect(db.cache.invalidated).toEqual([]);
  });

  test("whose commit is refused invalidates nothing", async () => {
    await db.raw.query(
      "ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users DEFERRABLE INITIALLY DEFERRED",
    );
    const client = watched(await db.client(), ["users", "orders"]);
    await client.query("BEGIN");
    await client.query("INSERT INTO orders VALUES (1, 99)");
    await expect(client.query("COMMIT")).rejects.toMatchObject({ code: "23503" });
    expect(db.cache.invalidated).toEqual([]);
    expect((await client.query("SELECT id FROM orders")).rows).toEqual([]);
  });

  test("in one text, or chained, is one as well", async () => {
    const client = watched(await db.client());
    await client.query("BEGIN; UPDATE users SET name = 'Bob'; COMMIT");
    expect(db.cache.invalidated).toEqual([USERS]);
    await client.query("BEGIN");
    await client.query("UPDATE users SET name = 'Cy'");
    await client.query("COMMIT AND CHAIN");
    expect(db.cache.invalidated).toEqual([USERS, USERS]);
    await client.query("UPDATE users SET name = 'Di'");
    await client.query("ROLLBACK");
    expect(db.cache.invalidated).toHaveLength(2);
  });

  test("that was committed within a text that then fails invalidates", async () => {
    const client = watched(await db.client());
    await expect(client.query("BEGIN; UPDATE users SET name = 'Bob'; COMMIT; SELECT 1 / 0")).rejects.toThrow(
      "division",
    );
    expect(db.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(client)).toBe("Bob");
  });

  test("in two phases invalidates at the second", async () => {
    const client = watched(await db.client());
    await client.query("BEGIN");
    await client.query("UPDATE users SET name = 'Bob'");
    await client.query("PREPARE TRANSACTION 'two'");
    expect(db.cache.invalidated).toEqual([]);
    await client.query("COMMIT PREPARED 'two'");
    expect(db.cache.invalidated).toEqual([USERS]);
  });

  test("of a pooled client that was given back open goes on where it is next used", async () => {
    const session = watched(db.pool({ max: 1 }));
    const first = await session.connect();
    await first.query("BEGIN");
    await first.query("UPDATE users SET name = 'Bob'");
    first.release();
    expect(db.cache.invalidated).toEqual([]);
    await session.query("COMMIT");
    expect(db.cache.invalidated).toEqual([USERS]);
  });
});

describe("a table that was declared to change along with another", () => {
  test("is invalidated with it", async () => {
    db.cache.tables.orders = { tags: ["table:users"] };
    await db.raw.query("INSERT INTO orders VALUES (1, 1)");
    await db.raw.query("ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE");
    const session = watched(db.pool(), ["users", "orders"]);
    const orders = async () => (await session.query("SELECT id FROM orders")).rows;
    expect(await orders()).toEqual([{ id: 1 }]);
    await session.query("DELETE FROM users");
    expect(await orders()).toEqual([]);
  });
});

describe("when the outcome is not known", () => {
  /** Makes the next write of the row wait until the lock is let go. */
  const lockRow = async () => {
    await db.raw.query("BEGIN; UPDATE users SET name = 'locked' WHERE id = 1");
    return () => db.raw.query("ROLLBACK");
  };
  const isWaiting = async (pid: number) => {
    const found = await db.raw.query("SELECT wait_event_type FROM pg_stat_activity WHERE pid = $1", [pid]);
    return found.rows[0]?.wait_event_type === "Lock";
  };
  const backendOf = async (client: pg.ClientBase): Promise<number> =>
    (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]!.pid;

  test("of a write whose connection is lost, it is invalidated until it has surely happened or not", async () => {
    const client = await db.client();
    const [session, reader] = [watched(client), watched(db.pool())];
    const pid = await backendOf(client);
    const unlock = await lockRow();
    const writing = session.query("UPDATE users SET name = 'Bob'");
    const failed = expect(writing).rejects.toThrow("terminated");
    await until(() => isWaiting(pid), { what: "the write waits for the lock" });
    (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    await failed;
    expect(db.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(reader)).toBe("Ada");
    // The server goes on with what it was told, and nobody hears of it.
    await unlock();
    const nameNow = async () => (await db.raw.query<{ name: string }>(READ, [1])).rows[0]!.name;
    await until(async () => (await nameNow()) === "Bob", { what: "the write is carried out" });
    expect(await nameIn(reader)).toBe("Ada");
    await clock.advance(1_000);
    expect(db.cache.invalidated).toEqual([USERS, USERS]);
    expect(await nameIn(reader)).toBe("Bob");
    await clock.advance(120_000);
    expect(db.cache.invalidated).toHaveLength(61);
  });

  test("of a commit whose connection the server ends, it is invalidated", async () => {
    await db.raw.query(
      "CREATE FUNCTION slow() RETURNS trigger AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END' LANGUAGE plpgsql",
    );
    await db.raw.query(
      "CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON users DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    const client = await db.client();
    const session = watched(client);
    const pid = await backendOf(client);
    await session.query("BEGIN");
    await session.query("UPDATE users SET name = 'Bob'");
    const committing = expect(session.query("COMMIT")).rejects.toMatchObject({ code: "57P01" });
    await until(
      async () =>
        (
          await db.raw.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'", [
            pid,
          ])
        ).rowCount === 1,
      { what: "the commit is under way" },
    );
    await db.raw.query("SELECT pg_terminate_backend($1)", [pid]);
    await committing;
    expect(db.cache.invalidated).toEqual([USERS]);
    await clock.advance(2_000);
    expect(db.cache.invalidated).toHaveLength(3);
  });

  test("since the client does not wait any longer, it is invalidated again when the answer comes, and no more", async () => {
    const client = await db.client();
    const session = watched(client);
    const unlock = await lockRow();
    await expect(
      session.query({ text: "UPDATE users SET name = 'Bob'", query_timeout: 50 } as pg.QueryConfig),
    ).rejects.toThrow("timeout");
    expect(db.cache.invalidated).toEqual([USERS]);
    await unlock();
    await until(() => db.cache.invalidated.length === 2, { what: "the answer is heard" });
    await clock.advance(60_000);
    expect(db.cache.invalidated).toHaveLength(2);
    expect(await nameIn(session)).toBe("Bob");
  });

  test("a transaction whose connection is lost before its commit was sent invalidates nothing", async () => {
    const client = await db.client();
    const session = watched(client);
    const pid = await backendOf(client);
    await session.query("BEGIN");
    await session.query("UPDATE users SET name = 'Bob'");
    const lost = new Promise((resolve) => client.once("end", resolve));
    await db.raw.query("SELECT pg_terminate_backend($1)", [pid]);
    await lost;
    await expect(session.query("COMMIT")).rejects.toThrow();
    await clock.advance(60_000);
    expect(db.cache.invalidated).toEqual([]);
  });

  test("a pool that cannot connect invalidates nothing", async () => {
    const session = watched(db.pool({ port: 1 }));
    await expect(session.query("UPDATE users SET name = 'Bob'")).rejects.toThrow();
    expect(db.cache.invalidated).toEqual([]);
  });
});

describe("a unit of work that commits past its session", () => {
  async function* unit(): AsyncGenerator<pg.PoolClient> {
    const client = await db.pool().connect();
    try {
      await client.query("BEGIN");
      yield client;
      await client.query("COMMIT");
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  }
  const unitOfWork = () => cachedDependency(unit, { cache: db.cache, tableName: "users" })();

  test("invalidates when the database has committed", async () => {
    const reader = watched(db.pool());
    expect([await nameIn(reader), await nameIn(reader)]).toEqual(["Ada", "Ada"]);
    for await (const client of unitOfWork()) {
      await client.query("UPDATE users SET name = 'Bob' WHERE id = 1");
      expect(db.cache.invalidated).toEqual([]);
    }
    expect(await nameIn(reader)).toBe("Bob");
    expect(db.cache.invalidated).toEqual([USERS]);
  });

  test("invalidates nothing when it rolls back", async () => {
    const reader = watched(db.pool());
    expect(await nameIn(reader)).toBe("Ada");
    const work = (async () => {
      for await (const client of unitOfWork()) {
        await client.query("UPDATE users SET name = 'Bob' WHERE id = 1");
        throw new Error("changed my mind");
      }
    })();
    await expect(work).rejects.toThrow("changed my mind");
    expect(await nameIn(reader)).toBe("Ada");
    expect(db.cache.invalidated).toEqual([]);
  });

  test("invalidates when the reply to a write and to the commit come together", async () => {
    const reader = watched(db.pool());
    expect(await nameIn(reader)).toBe("Ada");
    const client = await db.client();
    const session = watched(client);
    await client.query("BEGIN");
    const update = session.query("UPDATE users SET name = 'Bob' WHERE id = 1");
    await Promise.all([update, client.query("COMMIT")]);
    expect(await nameIn(reader)).toBe("Bob");
  });
});

test.each([
  ["a DO block", "DO $$ BEGIN UPDATE users SET name = 'Bob'; COMMIT; PERFORM 1 / 0; END $$"],
  ["a procedure", "CALL commits_and_fails()"],
])("%s that commits and then fails has invalidated", async (_, sql) => {
  await db.raw.query(
    "CREATE OR REPLACE PROCEDURE commits_and_fails() LANGUAGE plpgsql AS " +
      "$$ BEGIN UPDATE users SET name = 'Bob'; COMMIT; PERFORM 1 / 0; END $$",
  );
  const reader = watched(db.pool());
  expect(await nameIn(reader)).toBe("Ada");
  await expect(watched(db.pool()).query(sql)).rejects.toThrow("division by zero");
  expect(await nameIn(reader)).toBe("Bob");
});

test("clients of pg-native are refused, because nobody sees when their transactions end", async () => {
  // The class of their queries, without the bindings.
  const Query: unknown = createRequire(import.meta.url)("pg/lib/native/query.js");
  const Native = Object.assign(class extends pg.Client {}, { Query });
  const pool = db.pool({ Client: Native } as pg.PoolConfig);
  expect(() => watched(pool)).toThrow("pg-native");
  expect(() => watched(new Native())).toThrow("pg-native");
  expect(watched(db.pool())).toBeInstanceOf(pg.Pool);
});
