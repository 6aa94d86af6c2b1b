// The row of a user through knex.
import { createRequire } from "node:module";
import knex, { type Knex } from "knex";
import Database from "libsql";
import type { TestDatabase } from "./database.ts";
import type { UserSession, UserTransaction } from "./library-rules.ts";
import type { MysqlDatabase } from "./mysql-database.ts";
import type { SqliteFile } from "./sqlite.ts";

export function postgresKnex(db: TestDatabase, pool: Knex.PoolConfig = {}): Knex {
  const connection = { ...db.server.at(db.name) };
  const made = knex({ client: "pg", connection, pool: { min: 0, max: 4, ...pool } });
  db.atEnd(() => made.destroy());
  return made;
}

export function mysqlKnex(db: MysqlDatabase, pool: Knex.PoolConfig = {}): Knex {
  const connection = { ...db.mariadb.at(db.name) };
  const made = knex({ client: "mysql2", connection, pool: { min: 0, max: 4, ...pool } });
  db.atEnd(() => made.destroy());
  return made;
}

const BetterSqlite3 = createRequire(import.meta.url)(
  "knex/lib/dialects/better-sqlite3",
) as typeof knex.Client;

/** The client of better-sqlite3, over a library that is called the same way. */
class LibsqlClient extends BetterSqlite3 {
  _driver() {
    return Database;
  }
}

export function sqliteKnex(file: SqliteFile): Knex {
  const made = knex({ client: LibsqlClient, connection: { filename: file.path }, useNullAsDefault: true });
  file.atEnd(() => made.destroy());
  return made;
}

const users = (session: Knex) => session<{ id: number; name: string }>("users");

export function knexRows(session: Knex): UserSession {
  const row = (executor: Knex): UserTransaction => ({
    read: async () => (await users(executor).where({ id: 1 }).first("name"))!.name,
    write: (name) => users(executor).where({ id: 1 }).update({ name }),
    writeRaw: (name) => executor.raw("update users set name = ? where id = 1", [name]),
    insertAgain: () => users(executor).insert({ id: 1, name: "again" }).then(),
    nested: (work) => executor.transaction((inner) => work(row(inner))),
  });
  return {
    ...row(session),
    transaction: (work) => session.transaction((transaction) => work(row(transaction))),
    snapshot: (work) =>
      session.transaction((transaction) => work(row(transaction)), { isolationLevel: "repeatable read" }),
  };
}
