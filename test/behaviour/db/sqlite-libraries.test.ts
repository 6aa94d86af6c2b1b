// Sessions of all libraries over SQLite, where every transaction reads a snapshot.
import { BetterSQLiteSession } from "drizzle-orm/better-sqlite3/session";
import { BaseSQLiteDatabase, SQLiteSyncDialect } from "drizzle-orm/sqlite-core";
import { Kysely } from "kysely";
import { expect, test } from "vitest";
import { cachedDependency } from "../../db/database.ts";
import { remoteRows, sqliteRemote } from "../../db/drizzle-session.ts";
import { knexRows, sqliteKnex } from "../../db/knex-session.ts";
import { kyselyRows, type Schema, sqliteDialect } from "../../db/kysely-session.ts";
import { libraryRules } from "../../db/library-rules.ts";
import { sqliteFile } from "../../db/sqlite.ts";
import { managerRows, sqliteSource } from "../../db/typeorm-session.ts";

const file = sqliteFile();

libraryRules("knex over SQLite", { database: file, open: async () => sqliteKnex(file), rows: knexRows });
libraryRules("kysely over SQLite", {
  database: file,
  open: async () => new Kysely<Schema>({ dialect: sqliteDialect(file) }),
  rows: kyselyRows,
});
libraryRules("drizzle over SQLite", {
  database: file,
  open: async () => sqliteRemote(file),
  rows: remoteRows,
});
libraryRules("typeorm over SQLite", {
  database: file,
  open: () => sqliteSource(file),
  rows: (source) => managerRows(source.manager, "?"),
});

test("a connection that answers synchronously is refused with the reason", () => {
  const database = file.connect();
  file.atEnd(async () => database.close());
  // As drizzle-orm/better-sqlite3 makes it.
  const dialect = new SQLiteSyncDialect();
  const session = new BetterSQLiteSession(database as never, dialect, undefined);
  const drizzle = new BaseSQLiteDatabase("sync", dialect, session, undefined);
  for (const session of [drizzle, database]) {
    const get = cachedDependency(() => session, { cache: file.cache, tableName: "users" });
    expect(get).toThrow(/synchronous/);
  }
});
