// The row of a user through kysely.
import { type ControlledTransaction, type Kysely, PostgresDialect, SqliteDialect, sql } from "kysely";
import pg from "pg";
import type { TestDatabase } from "./database.ts";
import type { UserRow, UserSession, UserTransaction } from "./library-rules.ts";
import type { SqliteFile } from "./sqlite.ts";

export interface Schema {
  users: { id: number; name: string };
}

export function postgresDialect(db: TestDatabase, config: pg.PoolConfig = {}): PostgresDialect {
  const pool = new pg.Pool({ ...db.server.at(db.name), ...config });
  pool.on("error", () => {});
  // Kysely listens to none of them: a connection that is lost while it is in use would end the process.
  pool.on("connect", (client) => client.on("error", () => {}));
  db.atEnd(() => pool.end());
  return new PostgresDialect({ pool });
}

export function sqliteDialect(file: SqliteFile): SqliteDialect {
  const database = file.connect();
  file.atEnd(async () => database.close());
  return new SqliteDialect({ database: database as never });
}

export function kyselyRows(session: Kysely<Schema>): UserSession {
  let savepoints = 0;
  const row = (executor: Kysely<Schema>): UserRow => ({
    read: async () =>
      (await executor.selectFrom("users").select("name").where("id", "=", 1).executeTakeFirstOrThrow()).name,
    write: (name) => executor.updateTable("users").set({ name }).where("id", "=", 1).execute(),
    writeRaw: (name) => sql`update users set name = ${name} where id = 1`.execute(executor),
    insertAgain: () => executor.insertInto("users").values({ id: 1, name: "again" }).execute(),
  });
  const controlled = (transaction: ControlledTransaction<Schema>): UserTransaction => ({
    ...row(transaction),
    async nested(work) {
      const name = `inner_${++savepoints}`;
      const inner = await transaction.savepoint(name).execute();
      try {
        await work(controlled(inner as ControlledTransaction<Schema>));
        await inner.releaseSavepoint(name as never).execute();
      } catch (error) {
        await inner.rollbackToSavepoint(name as never).execute();
        throw error;
      }
    },
  });
  return {
    ...row(session),
    async transaction(work) {
      const transaction = await session.startTransaction().execute();
      try {
        await work(controlled(transaction));
        await transaction.commit().execute();
      } catch (error) {
        await transaction.rollback().execute();
        throw error;
      }
    },
    snapshot: (work) =>
      session
        .transaction()
        .setIsolationLevel("repeatable read")
        .execute((transaction) => work({ ...row(transaction), nested: () => Promise.reject(new Error()) })),
  };
}
