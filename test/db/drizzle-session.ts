// The row of a user through drizzle.
import { eq, type SQL, sql } from "drizzle-orm";
import { int as mysqlInt, mysqlTable, varchar } from "drizzle-orm/mysql-core";
import { drizzle as drizzleMysql, type MySql2Database } from "drizzle-orm/mysql2";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import { integer as sqliteInteger, sqliteTable, text as sqliteText } from "drizzle-orm/sqlite-core";
import { type SqliteRemoteDatabase, drizzle as sqliteDrizzle } from "drizzle-orm/sqlite-proxy";
import type { Pool } from "mysql2/promise";
import type { UserSession, UserTransaction } from "./library-rules.ts";
import type { SqliteFile } from "./sqlite.ts";

export const users = pgTable("users", { id: integer().primaryKey(), name: text().notNull() });
const sqliteUsers = sqliteTable("users", {
  id: sqliteInteger().primaryKey(),
  name: sqliteText().notNull(),
});

export type { NodePgDatabase };
export { drizzle };

const raw = (name: string): SQL => sql`update users set name = ${name} where id = 1`;

export function drizzleRows(session: NodePgDatabase): UserSession {
  const row = (
    executor: Pick<NodePgDatabase, "select" | "update" | "insert" | "execute" | "transaction">,
  ): UserTransaction => ({
    read: async () => (await executor.select().from(users).where(eq(users.id, 1)))[0]!.name,
    write: (name) => executor.update(users).set({ name }).where(eq(users.id, 1)),
    writeRaw: (name) => executor.execute(raw(name)),
    insertAgain: () => executor.insert(users).values({ id: 1, name: "again" }).then(),
    nested: (work) => executor.transaction((inner) => work(row(inner))),
  });
  return {
    ...row(session),
    transaction: (work) => session.transaction((transaction) => work(row(transaction))),
    snapshot: (work) =>
      session.transaction((transaction) => work(row(transaction)), { isolationLevel: "repeatable read" }),
  };
}

export const mysqlUsers = mysqlTable("users", {
  id: mysqlInt().primaryKey(),
  name: varchar({ length: 100 }).notNull(),
});

export function mysqlDrizzle(pool: Pool): MySql2Database<Record<string, never>> {
  return drizzleMysql({ client: pool });
}

export function mysqlDrizzleRows(session: MySql2Database<Record<string, never>>): UserSession {
  const row = (
    executor: Pick<typeof session, "select" | "update" | "insert" | "execute" | "transaction">,
  ): UserTransaction => ({
    read: async () => (await executor.select().from(mysqlUsers).where(eq(mysqlUsers.id, 1)))[0]!.name,
    write: (name) => executor.update(mysqlUsers).set({ name }).where(eq(mysqlUsers.id, 1)),
    writeRaw: (name) => executor.execute(raw(name)),
    insertAgain: () => executor.insert(mysqlUsers).values({ id: 1, name: "again" }).then(),
    nested: (work) => executor.transaction((inner) => work(row(inner))),
  });
  return {
    ...row(session),
    transaction: (work) => session.transaction((transaction) => work(row(transaction))),
    snapshot: (work) =>
      session.transaction((transaction) => work(row(transaction)), { isolationLevel: "repeatable read" }),
  };
}

export function sqliteRemote(file: SqliteFile): SqliteRemoteDatabase {
  const database = file.connect();
  file.atEnd(async () => database.close());
  return sqliteDrizzle(async (text, params, method) => {
    const statement = database.prepare(text);
    if (!statement.reader) {
      statement.run(...params);
      return { rows: [] };
    }
    const rows = statement.raw().all(...params) as unknown[];
    return { rows: (method === "get" ? rows[0] : rows) as unknown[] };
  });
}

export function remoteRows(session: SqliteRemoteDatabase): UserSession {
  const row = (
    executor: Pick<SqliteRemoteDatabase, "select" | "update" | "insert" | "run" | "transaction">,
  ): UserTransaction => ({
    read: async () => (await executor.select().from(sqliteUsers).where(eq(sqliteUsers.id, 1)))[0]!.name,
    write: (name) => executor.update(sqliteUsers).set({ name }).where(eq(sqliteUsers.id, 1)),
    writeRaw: (name) => executor.run(raw(name)),
    insertAgain: () => executor.insert(sqliteUsers).values({ id: 1, name: "again" }).then(),
    nested: (work) => executor.transaction((inner) => work(row(inner))),
  });
  return {
    ...row(session),
    transaction: (work) => session.transaction((transaction) => work(row(transaction))),
  };
}
