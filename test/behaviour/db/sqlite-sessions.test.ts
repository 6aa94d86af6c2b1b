// What is special about SQLite: its transactions end by themselves, and a connection may see more than its file.
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle, type SqliteRemoteDatabase } from "drizzle-orm/sqlite-proxy";
import { Kysely, sql } from "kysely";
import type Database from "libsql";
import { describe, expect, test } from "vitest";
import { cachedDependency } from "../../db/database.ts";
import { kyselyRows, type Schema, sqliteDialect } from "../../db/kysely-session.ts";
import { sqliteFile } from "../../db/sqlite.ts";

const file = sqliteFile();
const USERS = ["table:users"];

const watched = <S extends object>(session: S): S =>
  cachedDependency(() => session, { cache: file.cache, tableName: "users" })();

type Answer = (rows: unknown[]) => unknown[];

/** `answer`: what its callback makes of the rows. */
function remote(
  database: Database.Database,
  answer: Answer = (rows) => rows,
  isStrict = false,
): SqliteRemoteDatabase {
  const run = (text: string, params: unknown[]): unknown[] => {
    const statement = database.prepare(text);
    if (statement.reader || isStrict) return answer(statement.raw().all(...params) as unknown[]);
    statement.run(...params);
    return [];
  };
  return watched(
    drizzle(
      async (text, params, method) =>
        method === "run" && isStrict
          ? { rows: [database.prepare(text).run(...params)] }
          : { rows: run(text, params) },
      async (queries) => queries.map(({ sql: text, params }) => ({ rows: run(text, params) as never })),
    ),
  );
}

const nameIn = async (session: SqliteRemoteDatabase, table = "users"): Promise<unknown> =>
  (await session.all<string[]>(drizzleSql.raw(`select name from ${table} where id = 1`)))[0]?.[0];

describe("a transaction that SQLite ends by itself", () => {
  const refused = "insert or rollback into users values (1, 'again')";

  test("is over, so that what is written after it counts at once", async () => {
    const session = watched(new Kysely<Schema>({ dialect: sqliteDialect(file) }));
    const rows = kyselyRows(session);
    await rows.read();
    await session.connection().execute(async (connection) => {
      await sql`begin`.execute(connection);
      await sql`update users set name = 'undone' where id = 1`.execute(connection);
      await expect(sql.raw(refused).execute(connection)).rejects.toThrow("UNIQUE");
      expect(file.cache.invalidated).toEqual([]);
      await sql`update users set name = 'Bob' where id = 1`.execute(connection);
      expect(file.cache.invalidated).toEqual([USERS]);
      await expect(sql`commit`.execute(connection)).rejects.toThrow("no transaction");
    });
    expect(file.cache.invalidated).toEqual([USERS]);
    expect(await rows.read()).toBe("Bob");
    await rows.write("Cy");
    expect(await rows.read()).toBe("Cy");
  });

  test("may be over where it cannot be found out, so that writes count at once and at the commit", async () => {
    const session = remote(file.connect(), undefined, true);
    await nameIn(session);
    await session.run(drizzleSql`begin`);
    await expect(session.run(drizzleSql.raw(refused))).rejects.toThrow();
    expect(file.cache.invalidated).toEqual([]);
    await session.run(drizzleSql`update users set name = 'Bob' where id = 1`);
    expect(file.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(remote(file.connect()))).toBe("Bob");
    await expect(session.run(drizzleSql`commit`)).rejects.toThrow();
    // Begun anew, it is known again.
    file.cache.invalidated.length = 0;
    await session.run(drizzleSql`begin`);
    await session.run(drizzleSql`update users set name = 'Cy' where id = 1`);
    expect(file.cache.invalidated).toEqual([]);
    await session.run(drizzleSql`commit`);
    expect(file.cache.invalidated).toEqual([USERS]);
  });

  test("goes on when only a statement of it was refused", async () => {
    const session = watched(new Kysely<Schema>({ dialect: sqliteDialect(file) }));
    await session.transaction().execute(async (transaction) => {
      await kyselyRows(transaction).write("Bob");
      await expect(kyselyRows(transaction).insertAgain()).rejects.toThrow("UNIQUE");
      await kyselyRows(transaction).write("Cy");
      expect(file.cache.invalidated).toEqual([]);
    });
    expect(file.cache.invalidated).toEqual([USERS]);
  });
});

describe("several statements at once", () => {
  const update = (name: string) => drizzleSql.raw(`update users set name = '${name}' where id = 1`);

  test("are committed one by one up to the one that is refused", async () => {
    const session = remote(file.connect());
    await nameIn(session);
    const again = drizzleSql`insert into users values (1, 'again')`;
    const batch = session.batch([session.run(update("Bob")), session.run(again)] as never);
    await expect(batch).rejects.toThrow("UNIQUE");
    expect(file.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(session)).toBe("Bob");
  });

  test("are told apart where one of them ends with a comment", async () => {
    const session = remote(file.connect());
    await nameIn(session);
    file.raw.exec("CREATE TABLE notes (id INTEGER PRIMARY KEY)");
    const texts = [drizzleSql.raw("delete from notes -- all of them"), update("Bob")];
    await session.batch(texts.map((text) => session.run(text)) as never);
    expect(await nameIn(session)).toBe("Bob");
  });

  test("count as far as they stood before a transaction that is rolled back", async () => {
    const session = remote(file.connect());
    await nameIn(session);
    const texts = [update("Bob"), drizzleSql`begin`, update("undone"), drizzleSql`rollback`];
    await session.batch(texts.map((text) => session.run(text)) as never);
    expect(file.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(session)).toBe("Bob");
  });

  test("that begin a transaction and are refused leave it open, and its commit counts", async () => {
    const session = remote(file.connect());
    await nameIn(session);
    const again = drizzleSql`insert into users values (1, 'again')`;
    const texts = [drizzleSql`begin`, update("Bob"), again];
    await expect(session.batch(texts.map((text) => session.run(text)) as never)).rejects.toThrow("UNIQUE");
    await nameIn(remote(file.connect()));
    file.cache.invalidated.length = 0;
    await session.run(drizzleSql`commit`);
    expect(file.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(session)).toBe("Bob");
  });
});

test("the release of a savepoint that began a transaction commits it, in whichever case its name is written", async () => {
  const session = remote(file.connect());
  await nameIn(session);
  await session.run(drizzleSql`savepoint "Outer"`);
  await session.run(drizzleSql`update users set name = 'Bob' where id = 1`);
  expect(file.cache.invalidated).toEqual([]);
  await session.run(drizzleSql`release outer`);
  expect(file.cache.invalidated).toEqual([USERS]);
});

describe("connections that see different things do not answer for each other", () => {
  test("with databases that they have attached", async () => {
    const attach = (name: string) => {
      const database = file.connect();
      database.exec("ATTACH ':memory:' AS other");
      database.exec("CREATE TABLE other.users (id INTEGER PRIMARY KEY, name TEXT)");
      database.exec(`INSERT INTO other.users VALUES (1, '${name}')`);
      return remote(database);
    };
    expect(await nameIn(attach("one"), "other.users")).toBe("one");
    expect(await nameIn(attach("two"), "other.users")).toBe("two");
  });

  test("with another LIKE", async () => {
    const count = async (isStrict: boolean) => {
      const database = file.connect();
      database.exec(`PRAGMA case_sensitive_like = ${isStrict}`);
      return (await remote(database).all(drizzleSql`select id from users where name like 'ada'`)).length;
    };
    expect(await count(true)).toBe(0);
    expect(await count(false)).toBe(1);
  });

  test("with files of one path on different machines", async () => {
    const elsewhere = (database: Database.Database) =>
      remote(database, (rows) =>
        rows.map((row) =>
          (row as unknown[]).map((value) =>
            typeof value === "string" ? value.replaceAll(file.path, "/no/such/folder/data.db") : value,
          ),
        ),
      );
    const [one, two] = [elsewhere(file.connect()), elsewhere(file.connect())];
    expect(await nameIn(one)).toBe("Ada");
    await file.changeBehind("Bob");
    expect(await nameIn(two)).toBe("Bob");
    expect(await nameIn(one)).toBe("Ada");
  });
});
