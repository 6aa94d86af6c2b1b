// The row of a user through typeorm.
import Database from "libsql";
import { DataSource, type EntityManager, EntitySchema } from "typeorm";
import type { TestDatabase } from "./database.ts";
import type { UserSession, UserTransaction } from "./library-rules.ts";
import type { MysqlDatabase } from "./mysql-database.ts";
import type { SqliteFile } from "./sqlite.ts";

export interface User {
  id: number;
  name: string;
}

export const userSchema = new EntitySchema<User>({
  name: "User",
  tableName: "users",
  columns: { id: { type: Number, primary: true }, name: { type: String } },
});

type Cache = NonNullable<ConstructorParameters<typeof DataSource>[0]["cache"]>;

export async function postgresSource(db: TestDatabase, cache: Cache = false): Promise<DataSource> {
  const { user, ...address } = db.server.at(db.name);
  const source = new DataSource({
    type: "postgres",
    ...address,
    username: user,
    entities: [userSchema],
    cache,
  });
  await source.initialize();
  db.atEnd(() => source.destroy());
  return source;
}

export async function mysqlSource(db: MysqlDatabase, cache: Cache = false): Promise<DataSource> {
  const { user, ...address } = db.mariadb.at(db.name);
  const source = new DataSource({
    type: "mariadb",
    ...address,
    username: user,
    entities: [userSchema],
    cache,
  });
  await source.initialize();
  db.atEnd(() => source.destroy());
  return source;
}

export async function sqliteSource(file: SqliteFile, cache: Cache = false): Promise<DataSource> {
  const source = new DataSource({
    type: "better-sqlite3",
    database: file.path,
    driver: Database,
    entities: [userSchema],
    cache,
  });
  await source.initialize();
  file.atEnd(() => source.destroy());
  return source;
}

export function managerRows(manager: EntityManager, placeholder = "$1"): UserSession {
  const row = (executor: EntityManager): UserTransaction => ({
    read: async () => (await executor.findOneByOrFail(userSchema, { id: 1 })).name,
    // The query builder tells no subscriber of what it writes.
    write: (name) =>
      executor.createQueryBuilder().update(userSchema).set({ name }).where({ id: 1 }).execute(),
    writeRaw: (name) => executor.query(`update users set name = ${placeholder} where id = 1`, [name]),
    insertAgain: () => executor.insert(userSchema, { id: 1, name: "again" }),
    nested: (work) => executor.transaction((inner) => work(row(inner))),
  });
  return {
    ...row(manager),
    transaction: (work) => manager.transaction((inner) => work(row(inner))),
    snapshot: (work) => manager.transaction("REPEATABLE READ", (inner) => work(row(inner))),
  };
}
