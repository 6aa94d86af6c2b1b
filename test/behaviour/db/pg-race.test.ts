// The race between a read that began before a commit and the invalidation after it, interleaved by hand and at random.
import type pg from "pg";
import { describe, expect, test } from "vitest";
import type { CacheForSessions } from "../../../src/core/db-session.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import { cachedDependency, testDatabase } from "../../db/database.ts";
import type { UserSession, UserTransaction } from "../../db/library-rules.ts";
import { RACE_AGAIN, race, raceSeed, slowCache } from "../../db/race.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const db = testDatabase();
const redis = redisCaches({});

const READ = "SELECT id, name FROM users WHERE id = $1";

const watched = <S extends object>(session: S, cache: CacheForSessions): S =>
  cachedDependency(() => session, { cache, tableName: "users" })();

const nameIn = async (session: Pick<pg.ClientBase, "query">): Promise<string> =>
  (await session.query<{ name: string }>(READ, [1])).rows[0]!.name;

/** A cache whose next load has its rows already, and stores them only when it is let go. */
function heldLoads(cache: CacheForSessions) {
  let letGo: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let loaded = false;
  const held: CacheForSessions = {
    get: (key) => cache.get(key),
    invalidateTags: (tags) => cache.invalidateTags(tags),
    getOrSet: (key, load, options) =>
      cache.getOrSet(
        key,
        async () => {
          const rows = await load({} as never);
          loaded = true;
          await gate;
          return rows;
        },
        options,
      ),
  };
  return { held, letGo, isLoaded: () => loaded };
}

type TwoCaches = readonly [CacheForSessions, CacheForSessions];

const STORES: [string, () => TwoCaches][] = [
  ["memory, in one process", () => [db.cache, db.cache]],
  ["Redis, as from two", () => [redis.open(), redis.open()]],
];

describe.each(STORES)("over %s", (name, caches) => {
  test.each([
    ["a pool", async () => db.pool()],
    ["a client", async () => db.client()],
  ])("a read through %s that began before a commit does not store the old row", async (_, open) => {
    const [one, two] = caches();
    const [reader, writer] = [await open(), watched(db.pool(), two)];
    const { held, letGo, isLoaded } = heldLoads(one);
    const slow = watched(reader, held);
    const reading = nameIn(slow);
    await until(isLoaded, { what: "the old row is read" });
    await writer.query("BEGIN; UPDATE users SET name = 'Bob'; COMMIT");
    letGo();
    await reading;
    const fresh = watched(db.pool(), one);
    if (one === two) expect(await nameIn(fresh)).toBe("Bob");
    await until(async () => (await nameIn(fresh)) === "Bob", {
      what: "the new row is seen",
      timeoutMs: 3_000,
    });
    expect(await nameIn(watched(db.pool(), two))).toBe("Bob");
  });

  test("no read that begins after a commit returned sees the older row, whatever else reads, writes and fails", async () => {
    const seed = Number(process.env.XCACHE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
    const isShared = name.startsWith("Redis");
    const opened = caches();
    const outcome = await clash(seed, opened, isShared ? 1_000 : 0);
    expect(outcome.violations, `seed ${seed}: XCACHE_TEST_SEED=${seed} repeats it`).toEqual([]);
    expect(outcome.commits).toBeGreaterThan(20);
    expect(outcome.reads).toBeGreaterThan(100);
  });
});

describe("a race of readers and writers over node-postgres", () => {
  const session = (cache: CacheForSessions) => poolRows(watched(db.pool(), cache));

  test("never shows an older row", async () => {
    const cache = slowCache(db.cache, raceSeed);
    const [one, two] = [session(cache), session(cache)];
    const outcome = await race("Ada", { readers: [one, one, two, two], writers: [one, two], rounds: 20 });
    expect(outcome.violations, RACE_AGAIN).toEqual([]);
    expect(outcome.commits, RACE_AGAIN).toBeGreaterThan(5);
    expect(cache.loads, RACE_AGAIN).toBeLessThan(outcome.reads);
  });

  test("is lost, and noticed, where the cache is not invalidated", async () => {
    const deaf = session({ ...db.cache, invalidateTags: async () => {} });
    const outcome = await race("Ada", { seed: 1, readers: [deaf], writers: [deaf], rounds: 10 });
    expect(outcome.violations).not.toEqual([]);
  });
});

/** The name is in a partitioned table and follows by cascade into another; it can be read and written in several ways. */
const SCHEMA = `
  DROP TABLE users;
  CREATE TABLE master (id int, name text NOT NULL, UNIQUE (id, name)) PARTITION BY RANGE (id);
  CREATE TABLE master_low PARTITION OF master FOR VALUES FROM (0) TO (10);
  CREATE TABLE users (id int, name text, FOREIGN KEY (id, name) REFERENCES master (id, name) ON UPDATE CASCADE);
  CREATE VIEW people AS SELECT u.id, u.name FROM users u JOIN master m USING (id);
  CREATE VIEW masters AS SELECT * FROM master;
  CREATE TABLE inbox (name text);
  CREATE FUNCTION received() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN UPDATE master SET name = NEW.name WHERE id = 1; RETURN NULL; END $$;
  CREATE TRIGGER received AFTER INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION received();
  CREATE PROCEDURE rename(text) LANGUAGE plpgsql AS
    $$ BEGIN UPDATE master SET name = $1 WHERE id = 1; COMMIT; PERFORM 1; END $$;
  INSERT INTO master VALUES (1, 'Ada');
  INSERT INTO users VALUES (1, 'Ada')`;

const READS = ["users", "people", "master", "master_low"].map(
  (table) => `SELECT name FROM ${table} WHERE id = $1`,
);
const WRITES = [
  ...["master", "master_low", "masters"].map((table) => `UPDATE ${table} SET name = $1 WHERE id = 1`),
  "INSERT INTO inbox VALUES ($1)",
];

describe("a race over views, partitions, cascades, triggers and procedures, in transactions of the application's own", () => {
  test("shows no older row, and none that was not committed", async () => {
    await db.raw.query(SCHEMA);
    const cache = slowCache(db.cache, raceSeed);
    const random = seededRandom(raceSeed);
    const oneOf = (texts: readonly string[]): string => texts[Math.floor(random() * texts.length)]!;
    const wrap = <S extends object>(session: S): S =>
      cachedDependency(() => session, { cache, tableName: "*" })();
    const row = (executor: Pick<pg.ClientBase, "query">): UserTransaction => ({
      read: async () => (await executor.query<{ name: string }>(oneOf(READS), [1])).rows[0]!.name,
      write: (name) => executor.query(oneOf(WRITES), [name]),
      writeRaw: (name) => executor.query("CALL rename($1)", [name]),
      insertAgain: () => Promise.reject(new Error("not used")),
      async nested(work) {
        await executor.query("SAVEPOINT inner_one");
        await work(row(executor));
        await executor.query("RELEASE inner_one");
      },
    });
    const session = (): UserSession => {
      const real = db.pool();
      async function* unit(): AsyncGenerator<pg.PoolClient> {
        const client = await real.connect();
        let isDone = false;
        try {
          await client.query("BEGIN");
          yield client;
          isDone = true;
        } finally {
          await client.query(isDone ? "COMMIT" : "ROLLBACK");
          client.release();
        }
      }
      const unitOfWork = cachedDependency(unit, { cache, tableName: "*" });
      return {
        ...row(wrap(real)),
        async transaction(work) {
          for await (const client of unitOfWork()) await work(row(client));
        },
      };
    };
    const [one, two] = [session(), session()];
    const outcome = await race("Ada", { readers: [one, one, two], writers: [one, two], rounds: 25 });
    expect(outcome.violations, RACE_AGAIN).toEqual([]);
    expect(outcome.commits, RACE_AGAIN).toBeGreaterThan(5);
    expect(cache.loads, RACE_AGAIN).toBeLessThan(outcome.reads);
  });
});

function poolRows(pool: pg.Pool): UserSession {
  const row = (executor: Pick<pg.ClientBase, "query">): UserTransaction => ({
    read: async () => nameIn(executor),
    write: (name) => executor.query("UPDATE users SET name = $1 WHERE id = 1", [name]),
    writeRaw: (name) => executor.query(`UPDATE users SET name = '${name}' WHERE id = 1`),
    insertAgain: () => executor.query("INSERT INTO users VALUES (1, 'again')"),
    async nested(work) {
      await executor.query("SAVEPOINT inner_one");
      await work(row(executor));
      await executor.query("RELEASE inner_one");
    },
  });
  return {
    ...row(pool),
    async transaction(work) {
      const client = await pool.connect();
      try {
        await client.query("BEGIN");
        await work(row(client));
        await client.query("COMMIT");
      } catch (error) {
        await client.query("ROLLBACK");
        throw error;
      } finally {
        client.release();
      }
    },
  };
}

/**
 * Writers count a row up, readers look at it. What a writer's own cache serves must be at least what was committed
 * when the read began; another cache may lag behind by `noticeMs`.
 */
async function clash(seed: number, caches: readonly CacheForSessions[], noticeMs: number) {
  const random = seededRandom(seed);
  await db.raw.query("UPDATE users SET name = '0'");
  const pools = caches.map((cache) => watched(db.pool({ max: 8 }), cache));
  /** Each commit: its number, whose cache heard of it, and when it returned. */
  const returned: { value: number; by: number; at: number }[] = [];
  const violations: string[] = [];
  let [commits, reads, isOver] = [0, 0, false];

  const least = (who: number, now: number): number => {
    let value = 0;
    for (const commit of returned) {
      const counts = commit.by === who || caches[commit.by] === caches[who] || commit.at + noticeMs <= now;
      if (counts) value = Math.max(value, commit.value);
    }
    return value;
  };
  const write = async (who: number): Promise<void> => {
    const client = await pools[who]!.connect();
    try {
      await client.query("BEGIN");
      if (random() < 0.3) await client.query(READ, [1]);
      const { rows } = await client.query(
        "UPDATE users SET name = (name::int + 1)::text WHERE id = 1 RETURNING name",
      );
      if (random() < 0.3) await client.query("ROLLBACK");
      else {
        await client.query("COMMIT");
        returned.push({ value: Number(rows[0].name), by: who, at: performance.now() });
        commits++;
      }
    } finally {
      client.release();
    }
  };
  const read = async (who: number): Promise<void> => {
    const expected = least(who, performance.now());
    const way = random();
    const client = way < 0.3 ? await pools[who]!.connect() : undefined;
    try {
      if (way < 0.1) await client?.query("BEGIN");
      const seen = Number(await nameIn(client ?? pools[who]!));
      if (way < 0.1) await client?.query("COMMIT");
      reads++;
      if (seen < expected) violations.push(`cache ${who} showed ${seen} after ${expected} was committed`);
    } finally {
      client?.release();
    }
  };
  const repeat = async (work: () => Promise<void>): Promise<void> => {
    while (!isOver) await work();
  };
  const readers = pools.flatMap((_, who) => Array.from({ length: 4 }, () => repeat(() => read(who))));
  const writers = pools.map(async (_, who) => {
    for (let round = 0; round < 60; round++) await write(who);
  });
  await Promise.all(writers).finally(() => {
    isOver = true;
  });
  await Promise.all(readers);
  return { violations, commits, reads };
}
