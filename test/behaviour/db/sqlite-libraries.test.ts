// Sessions of all libraries over SQLite, where every transaction reads a snapshot.
import { Kysely } from "kysely";
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
