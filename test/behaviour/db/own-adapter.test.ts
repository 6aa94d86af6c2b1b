// The contract fits another library and another database: an adapter of a few lines for an async session of SQLite.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { beforeEach, describe, expect, test } from "vitest";
import type { SessionAdapter } from "../../../src/core/db-session.ts";
import { XCache } from "../../../src/xcache.ts";
import { cachedDependency, countingCache } from "../../db/database.ts";
import { runFolder } from "../../support/run-folder.ts";

type Row = Readonly<Record<string, unknown>>;

/** A library that is not known to the package. */
class SqliteSession {
  readonly path: string;
  readonly #database: Database.Database;

  constructor(path: string) {
    this.path = path;
    this.#database = new Database(path);
  }

  async all(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const statement = this.#database.prepare(text);
    if (statement.reader) return statement.all(...values) as Row[];
    statement.run(...values);
    return [];
  }
}

const sqliteSessions: SessionAdapter<SqliteSession> = {
  name: "sqlite session",
  recognises: (session): session is SqliteSession => session instanceof SqliteSession,
  wrap(session, tracker) {
    const connection = tracker.connection(session, () => ({
      dialect: "sqlite",
      database: session.path,
      query: (text, values) => session.all(text, values),
      // Nothing is between it and the file: what it throws is what happened.
      isRefusal: () => true,
    }));
    const all = (text: string, values: readonly unknown[] = []): Promise<Row[]> =>
      connection.run({
        text,
        values,
        execute: () => session.all(text, values),
        cacheable: { fetch: () => session.all(text, values), restore: (data) => data as Row[] },
      });
    return Object.create(session, { all: { value: all } }) as SqliteSession;
  },
};

let path: string;
let raw: SqliteSession;
const cache = countingCache(new XCache({ kvUrl: "memory://" }));

const open = (): SqliteSession =>
  cachedDependency((file: string) => new SqliteSession(file), {
    cache,
    tableName: "users",
    adapter: sqliteSessions,
  })(path);

beforeEach(async () => {
  path = join(mkdtempSync(join(runFolder(), "sqlite-")), "data.db");
  raw = new SqliteSession(path);
  await raw.all("PRAGMA journal_mode = WAL");
  await raw.all("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)");
  await raw.all("INSERT INTO users VALUES (1, 'Ada')");
  cache.invalidated.length = 0;
});

const READ = "SELECT name FROM users WHERE id = ?";

describe("through an adapter of one's own", () => {
  test("reads are cached, for every connection to the file", async () => {
    const session = open();
    expect(session).toBeInstanceOf(SqliteSession);
    expect(await session.all(READ, [1])).toEqual([{ name: "Ada" }]);
    await raw.all("UPDATE users SET name = 'Bob'");
    expect(await session.all(READ, [1])).toEqual([{ name: "Ada" }]);
    expect(await open().all(READ, [1])).toEqual([{ name: "Ada" }]);
  });

  test("writes and commits invalidate, rollbacks do not", async () => {
    const [writer, reader] = [open(), open()];
    await reader.all(READ, [1]);
    await writer.all("UPDATE users SET name = 'Bob' WHERE id = 1");
    expect(await reader.all(READ, [1])).toEqual([{ name: "Bob" }]);
    await writer.all("BEGIN");
    await writer.all("UPDATE users SET name = 'Cy' WHERE id = 1");
    await writer.all("ROLLBACK");
    expect(cache.invalidated).toEqual([["table:users"]]);
    await writer.all("BEGIN IMMEDIATE");
    await writer.all("UPDATE users SET name = 'Di' WHERE id = 1");
    expect(await reader.all(READ, [1])).toEqual([{ name: "Bob" }]);
    await writer.all("COMMIT");
    expect(cache.invalidated).toHaveLength(2);
    expect(await reader.all(READ, [1])).toEqual([{ name: "Di" }]);
    await expect(writer.all("INSERT INTO users VALUES (1, 'again')")).rejects.toThrow();
    expect(cache.invalidated).toHaveLength(2);
  });

  test("a transaction reads its own snapshot", async () => {
    const session = open();
    await session.all(READ, [1]);
    await raw.all("UPDATE users SET name = 'Bob'");
    await session.all("BEGIN");
    expect(await session.all(READ, [1])).toEqual([{ name: "Bob" }]);
    await session.all("COMMIT");
    expect(await session.all(READ, [1])).toEqual([{ name: "Ada" }]);
  });

  test("temporary tables, views and other files are not mixed up", async () => {
    const session = open();
    expect(await session.all(READ, [1])).toEqual([{ name: "Ada" }]);
    await session.all("CREATE TEMP TABLE users (id INTEGER, name TEXT)");
    expect(await session.all(READ, [1])).toEqual([]);
    await raw.all("ALTER TABLE users RENAME TO people");
    await raw.all("CREATE VIEW users AS SELECT * FROM people");
    const before = await cache.keys();
    expect(await open().all(`${READ} AND true`, [1])).toEqual([{ name: "Ada" }]);
    expect(await cache.keys()).toEqual(before);
  });
});
