// The rules every library's session obeys, whichever it is: each library's test runs them with its own calls.
import { beforeEach, describe, expect, test } from "vitest";
import type { CacheForSessions } from "../../src/core/db-session.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { until } from "../support/until.ts";
import { cachedDependencyWith, type TestDatabase } from "./database.ts";
import type { MysqlDatabase } from "./mysql-database.ts";
import { RACE_AGAIN, race, raceSeed, slowCache } from "./race.ts";
import type { SqliteFile } from "./sqlite.ts";

/** The row `users (id = 1)` through a session, with the calls of its library. */
export interface UserRow {
  read(): Promise<string>;
  write(name: string): Promise<unknown>;
  /** By SQL of the application's own. */
  writeRaw(name: string): Promise<unknown>;
  /** Inserts the row again, which the database refuses. */
  insertAgain(): Promise<unknown>;
}

export interface UserTransaction extends UserRow {
  /** A transaction within it. */
  nested(work: (inner: UserTransaction) => Promise<void>): Promise<unknown>;
}

export interface UserSession extends UserRow {
  transaction(work: (transaction: UserTransaction) => Promise<void>): Promise<unknown>;
  /** One that reads a snapshot, where the library can ask for it. */
  snapshot?(work: (transaction: UserTransaction) => Promise<void>): Promise<unknown>;
}

export interface Library<Session extends object> {
  readonly database: TestDatabase | MysqlDatabase | SqliteFile;
  /** A session of the library as the application makes it. */
  open(): Promise<Session>;
  rows(session: Session): UserSession;
}

const USERS = ["table:users"];
const undo = new Error("undo");

export function libraryRules<Session extends object>(name: string, library: Library<Session>): void {
  const db = library.database;
  const isPostgres = "server" in db;
  const isServer = isPostgres || "mariadb" in db;
  let clock: ManualClock;
  let session: UserSession;

  const watched = (made: Session, cache: CacheForSessions = db.cache): UserSession =>
    library.rows(cachedDependencyWith(clock)(() => made, { cache, tableName: "users" })());

  describe(`a session of ${name}`, () => {
    beforeEach(async () => {
      clock = new ManualClock();
      session = watched(await library.open());
    });

    test("caches reads, for every session of the database", async () => {
      expect(await session.read()).toBe("Ada");
      await db.changeBehind("Bob");
      expect(await session.read()).toBe("Ada");
      expect(await watched(await library.open()).read()).toBe("Ada");
      expect(db.cache.invalidated).toEqual([]);
      expect((await db.cache.keys()).length).toBe(1);
    });

    test("invalidates once per autocommitted write, before its caller gets the result", async () => {
      const reader = watched(await library.open());
      expect(await reader.read()).toBe("Ada");
      await session.write("Bob");
      expect(db.cache.invalidated).toEqual([USERS]);
      expect(await reader.read()).toBe("Bob");
      await session.writeRaw("Cy");
      expect(db.cache.invalidated).toEqual([USERS, USERS]);
      expect(await reader.read()).toBe("Cy");
      await expect(session.insertAgain()).rejects.toThrow();
      expect(db.cache.invalidated).toHaveLength(2);
    });

    test("invalidates once at the commit of a transaction", async () => {
      expect(await session.read()).toBe("Ada");
      await session.transaction(async (transaction) => {
        await transaction.write("Bob");
        await transaction.writeRaw("Cy");
        expect(db.cache.invalidated).toEqual([]);
      });
      expect(db.cache.invalidated).toEqual([USERS]);
      expect(await session.read()).toBe("Cy");
      await session.transaction(async (transaction) => {
        await transaction.read();
      });
      expect(db.cache.invalidated).toHaveLength(1);
    });

    test("invalidates nothing when a transaction is rolled back, whose reads are its own", async () => {
      await session.read();
      const rolledBack = session.transaction(async (transaction) => {
        await transaction.write("Bob");
        expect(await transaction.read()).toBe("Bob");
        throw undo;
      });
      await expect(rolledBack).rejects.toBe(undo);
      expect(db.cache.invalidated).toEqual([]);
      await db.changeBehind("Cy");
      expect(await session.read()).toBe("Ada");
    });

    if (isPostgres) {
      test("invalidates nothing when the database answers a commit with a rollback", async () => {
        await session
          .transaction(async (transaction) => {
            await transaction.write("Bob");
            await expect(transaction.insertAgain()).rejects.toThrow();
          })
          .catch(() => {});
        expect(db.cache.invalidated).toEqual([]);
        expect(await session.read()).toBe("Ada");
      });
    }

    test("reads the database in a snapshot transaction, and caches nothing of it", async () => {
      await session.read();
      await db.changeBehind("Bob");
      const inSnapshot = isPostgres ? session.snapshot : session.transaction;
      await inSnapshot?.(async (transaction) => {
        expect(await transaction.read()).toBe("Bob");
      });
      expect(await session.read()).toBe("Ada");
    });

    test("invalidates nested transactions at the outermost commit", async () => {
      await session.read();
      const undone = (transaction: UserTransaction) =>
        transaction.nested(async (inner) => {
          await inner.write("undone");
          throw undo;
        });
      await session.transaction(async (transaction) => {
        await expect(undone(transaction)).rejects.toBe(undo);
        await transaction.nested(async (inner) => {
          await inner.write("Bob");
        });
        expect(db.cache.invalidated).toEqual([]);
        expect(await transaction.read()).toBe("Bob");
      });
      expect(db.cache.invalidated).toEqual([USERS]);
      expect(await session.read()).toBe("Bob");
      await session.transaction(async (transaction) => {
        await expect(undone(transaction)).rejects.toBe(undo);
      });
      expect(db.cache.invalidated).toEqual([USERS]);
    });

    if (isPostgres) {
      test("repeats the invalidation of what may have been written", async () => {
        await session.read();
        const { raw } = db as TestDatabase;
        await raw.query("BEGIN; UPDATE users SET name = 'locked' WHERE id = 1");
        const writing = session.write("Bob");
        const failed = expect(writing).rejects.toThrow();
        await until(async () => (await waiting(raw)) !== undefined, { what: "the write waits for the lock" });
        await raw.query("SELECT pg_terminate_backend($1)", [await waiting(raw)]);
        await failed;
        await raw.query("ROLLBACK");
        expect(db.cache.invalidated).toEqual([USERS]);
        await clock.advance(2_000);
        expect(db.cache.invalidated).toEqual([USERS, USERS, USERS]);
        // The libraries' pools may give the lost connection once more, until they have heard of its end.
        await until(
          () =>
            session.read().then(
              (name) => name === "Ada",
              () => false,
            ),
          {
            what: "the session is usable again",
          },
        );
      });
    }

    test("never shows an older row after a commit has returned", async () => {
      const readers = [watched(await library.open()), session];
      for (let round = 0; round < 5; round++) {
        const early = readers.map((reader) => reader.read());
        if (round % 2 === 0) await session.write(`name ${round}`);
        else await session.transaction((transaction) => transaction.write(`name ${round}`) as Promise<void>);
        for (const reader of readers) expect(await reader.read()).toBe(`name ${round}`);
        await Promise.all(early);
      }
    });

    test("never shows an older row while others read and write at random", async () => {
      const cache = slowCache(db.cache, raceSeed);
      const open = async () => watched(await library.open(), cache);
      const [one, two, three] = [await open(), await open(), await open()];
      const outcome = isServer
        ? await race("Ada", { readers: [one, one, two, two], writers: [one, two], rounds: 15 })
        : // It has one writer at a time, and most libraries one connection: whoever shares it is in its transaction.
          await race("Ada", { readers: [two, three], writers: [one], rounds: 30 });
      expect(outcome.violations, RACE_AGAIN).toEqual([]);
      expect(outcome.commits, RACE_AGAIN).toBeGreaterThan(5);
      expect(cache.loads).toBeGreaterThan(0);
      expect(cache.loads, RACE_AGAIN).toBeLessThan(outcome.reads);
    });
  });
}

/** The backend that waits for a lock. */
async function waiting(raw: TestDatabase["raw"]): Promise<number | undefined> {
  const found = await raw.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
  );
  return found.rows[0]?.pid;
}
