// A transaction that the application begins and ends with the library's own objects, while its work goes through the wrapper.
import { Kysely } from "kysely";
import { describe, expect, test } from "vitest";
import type { CountingCache, TestDatabase } from "../../db/database.ts";
import { cachedDependency, testDatabase } from "../../db/database.ts";
import {
  drizzle,
  drizzleRows,
  type NodePgDatabase,
  remoteRows,
  sqliteRemote,
} from "../../db/drizzle-session.ts";
import { knexRows, postgresKnex, sqliteKnex } from "../../db/knex-session.ts";
import { kyselyRows, postgresDialect, type Schema, sqliteDialect } from "../../db/kysely-session.ts";
import type { UserRow } from "../../db/library-rules.ts";
import { type SqliteFile, sqliteFile } from "../../db/sqlite.ts";
import { managerRows, postgresSource, sqliteSource } from "../../db/typeorm-session.ts";

const USERS = ["table:users"];
const undo = new Error("undo");

/** A transaction of the library, not watched. */
interface Begun {
  readonly session: object;
  commit(): Promise<unknown>;
  rollback(): Promise<unknown>;
}

interface Unit {
  /** A transaction object that its owner ends; absent where the library has none. */
  begin?(): Promise<Begun>;
  /** The library's own `transaction(callback)`. */
  within(work: (session: object) => Promise<void>): Promise<unknown>;
  rows(session: object): UserRow;
  /** Another session, as the application opens it. */
  reader(): Promise<object>;
}

type Database = TestDatabase | SqliteFile;
type Units = readonly (readonly [string, () => Promise<Unit>])[];

const knexUnit = (open: () => ReturnType<typeof postgresKnex>): Unit => {
  const real = open();
  return {
    async begin() {
      const transaction = await real.transaction();
      return {
        session: transaction,
        commit: () => transaction.commit(),
        rollback: () => transaction.rollback(),
      };
    },
    within: (work) => real.transaction(work),
    rows: (session) => knexRows(session as typeof real),
    reader: async () => open(),
  };
};

const kyselyUnit = (open: () => Kysely<Schema>): Unit => {
  const real = open();
  return {
    async begin() {
      const transaction = await real.startTransaction().execute();
      return {
        session: transaction,
        commit: () => transaction.commit().execute(),
        rollback: () => transaction.rollback().execute(),
      };
    },
    within: (work) => real.transaction().execute(work),
    rows: (session) => kyselyRows(session as Kysely<Schema>),
    reader: async () => open(),
  };
};

const typeormUnit = async (
  open: () => ReturnType<typeof postgresSource>,
  yields: "runner" | "manager",
  placeholder: string,
): Promise<Unit> => {
  const real = await open();
  return {
    async begin() {
      const runner = real.createQueryRunner();
      await runner.startTransaction();
      const ending = (end: Promise<void>) => end.finally(() => runner.release());
      return {
        session: yields === "runner" ? runner : runner.manager,
        commit: () => ending(runner.commitTransaction()),
        rollback: () => ending(runner.rollbackTransaction()),
      };
    },
    within: (work) => real.transaction(work),
    rows: (session) =>
      managerRows(("manager" in session ? session.manager : session) as typeof real.manager, placeholder),
    reader: open,
  };
};

function unitRules(db: Database, units: Units): void {
  const watched = <S extends object>(session: S, cache: CountingCache = db.cache): S =>
    cachedDependency(() => session, { cache, tableName: "users" })();

  describe.each(units)("%s", (_, open) => {
    test("invalidates when the generator that began it commits, and not when it rolls back", async () => {
      const unit = await open();
      const { begin } = unit;
      if (begin === undefined) return;
      async function* transaction(): AsyncGenerator<object> {
        const begun = await begin!();
        // A consumer that throws leaves the loop, which ends the generator without an error.
        let isDone = false;
        try {
          yield begun.session;
          isDone = true;
        } finally {
          await (isDone ? begun.commit() : begun.rollback());
        }
      }
      const unitOfWork = cachedDependency(transaction, { cache: db.cache, tableName: "users" });
      const reader = unit.rows(watched(await unit.reader()));
      expect([await reader.read(), await reader.read()]).toEqual(["Ada", "Ada"]);
      for (const [round, name] of ["Bob", "Cy"].entries()) {
        for await (const session of unitOfWork()) {
          await unit.rows(session).write(name);
          expect(await unit.rows(session).read()).toBe(name);
          expect(db.cache.invalidated).toHaveLength(round);
        }
        expect(await reader.read()).toBe(name);
        expect(db.cache.invalidated[round]).toEqual(USERS);
      }
      const undone = async () => {
        for await (const session of unitOfWork()) {
          await unit.rows(session).write("Di");
          throw undo;
        }
      };
      await expect(undone()).rejects.toBe(undo);
      expect(await reader.read()).toBe("Cy");
      expect(db.cache.invalidated).toHaveLength(2);
    });

    test("invalidates when the library commits the transaction that was wrapped within it", async () => {
      const unit = await open();
      const reader = unit.rows(watched(await unit.reader()));
      expect(await reader.read()).toBe("Ada");
      for (const [round, name] of ["Bob", "Cy"].entries()) {
        await unit.within(async (session) => {
          await unit.rows(watched(session)).write(name);
          expect(db.cache.invalidated).toHaveLength(round);
        });
        expect(await reader.read()).toBe(name);
        expect(db.cache.invalidated[round]).toEqual(USERS);
      }
      const undone = unit.within(async (session) => {
        await unit.rows(watched(session)).write("Di");
        throw undo;
      });
      await expect(undone).rejects.toBe(undo);
      expect(await reader.read()).toBe("Cy");
      expect(db.cache.invalidated).toHaveLength(2);
    });
  });
}

describe("a unit of work over PostgreSQL", () => {
  const db = testDatabase();
  unitRules(db, [
    ["knex", async () => knexUnit(() => postgresKnex(db))],
    ["kysely", async () => kyselyUnit(() => new Kysely({ dialect: postgresDialect(db) }))],
    ["a runner of typeorm", () => typeormUnit(() => postgresSource(db), "runner", "$1")],
    ["a manager of typeorm", () => typeormUnit(() => postgresSource(db), "manager", "$1")],
    ["drizzle", async () => drizzleUnit(db)],
  ]);
});

function drizzleUnit(db: TestDatabase): Unit {
  const open = () => drizzle({ client: db.pool() });
  const real = open();
  return {
    async begin() {
      const client = await db.pool().connect();
      await client.query("BEGIN");
      const ending = async (how: string) => {
        await client.query(how);
        client.release();
      };
      return {
        session: drizzle({ client }),
        commit: () => ending("COMMIT"),
        rollback: () => ending("ROLLBACK"),
      };
    },
    within: (work) => real.transaction(work),
    rows: (session) => drizzleRows(session as NodePgDatabase),
    reader: async () => open(),
  };
}

describe("a unit of work over SQLite", () => {
  const db = sqliteFile();
  unitRules(db, [
    ["knex", async () => knexUnit(() => sqliteKnex(db))],
    ["kysely", async () => kyselyUnit(() => new Kysely({ dialect: sqliteDialect(db) }))],
    ["a runner of typeorm", () => typeormUnit(() => sqliteSource(db), "runner", "?")],
    ["a manager of typeorm", () => typeormUnit(() => sqliteSource(db), "manager", "?")],
    [
      "drizzle",
      async () => {
        const real = sqliteRemote(db);
        return {
          within: (work) => real.transaction(work),
          rows: (session) => remoteRows(session as typeof real),
          reader: async () => sqliteRemote(db),
        };
      },
    ],
  ]);
});
