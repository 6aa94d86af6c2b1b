// Sessions of mysql2 over MariaDB: every form of its calls, and what they return.
import { once } from "node:events";
import { type Pool as CallbackPool, createConnection, createPool, type RowDataPacket } from "mysql2";
import type { Pool } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { cachedDependency } from "../database.ts";
import { libraryRules } from "../library-rules.ts";
import { mysqlDatabase } from "../mysql-database.ts";
import { mysql2Rows } from "../mysql2-session.ts";

const db = mysqlDatabase();

libraryRules("mysql2", { database: db, open: async () => db.pool(), rows: mysql2Rows });

const watched = <Session>(session: Session, tableName: string | string[] = "users"): Session =>
  cachedDependency(() => session, { cache: db.cache, tableName })();

/** A pool with callbacks. */
function callbackPool(): CallbackPool {
  const pool = createPool(db.mariadb.at(db.name));
  db.atEnd(() => pool.promise().end());
  return pool;
}

const called = <Result>(begin: (done: (error: unknown, result: Result) => void) => void): Promise<Result> =>
  new Promise((resolve, reject) => {
    begin((error, result) => (error ? reject(error) : resolve(result)));
  });

/** In both ways to send a statement. */
const METHODS = ["query", "execute"] as const;
const sender = (pool: Pool, method: (typeof METHODS)[number]): Pool["query"] =>
  (pool[method] as Pool["query"]).bind(pool);

describe("a pool of mysql2", () => {
  test("takes no connection for what is cached", async () => {
    const pool = watched(db.pool({ connectionLimit: 1 }));
    const read = () => pool.query("SELECT name FROM users");
    await read();
    const held = await pool.getConnection();
    expect((await read())[0]).toEqual([{ name: "Ada" }]);
    held.release();
  });

  test("returns from the cache what the library would return, with the options of each call", async () => {
    await db.raw.query(`CREATE TABLE things (id bigint PRIMARY KEY, d decimal(5, 2), t datetime, j json, b blob, f double, n int);
      INSERT INTO things VALUES (9007199254740993, 1.50, '2020-01-02 03:04:05', '{"a":[1]}', x'00ff', 0.1, NULL)`);
    const real = db.pool({ supportBigNumbers: true });
    const pool = watched(real, "things");
    const typeCast = (field: { readonly name: string }, next: () => unknown) => [field.name, next()];
    const options = [{}, { rowsAsArray: true }, { nestTables: true }, { dateStrings: true }, { typeCast }];
    for (const method of METHODS) {
      for (const each of options) {
        const call = { sql: "SELECT * FROM things", ...each };
        const [rows, fields] = await sender(real, method)(call);
        for (const round of ["loaded", "cached"]) {
          const [seen, columns] = await sender(pool, method)(call);
          expect(seen, round).toEqual(rows);
          expect(columns.map(({ name, type }) => [name, type])).toEqual(
            fields.map(({ name, type }) => [name, type]),
          );
        }
      }
    }
    expect(await db.cache.keys()).toHaveLength(2);
    const [first] = await pool.query<RowDataPacket[]>("SELECT b FROM things");
    first[0]!.b[0] = 7;
    expect((await pool.query("SELECT b FROM things"))[0]).toEqual([{ b: Buffer.from([0, 255]) }]);
  });

  test("makes its keys of what is sent, though the values are changed right after the call", async () => {
    await db.raw.query("INSERT INTO users VALUES (2, 'Bob')");
    const pool = watched(db.pool({ namedPlaceholders: true }));
    for (const method of METHODS) {
      const values = { id: 1 };
      const reading = sender(pool, method)("SELECT name FROM users WHERE id = :id", values);
      values.id = 2;
      expect((await reading)[0]).toEqual([{ name: "Ada" }]);
      const read = (id: number) => sender(pool, method)("SELECT name FROM users WHERE id = :id", { id });
      expect((await read(1))[0]).toEqual([{ name: "Ada" }]);
      expect((await read(2))[0]).toEqual([{ name: "Bob" }]);
    }
  });

  test("with callbacks, calls back and returns an emitter", async () => {
    const pool = watched(callbackPool());
    for (const round of ["loaded", "cached"]) {
      const command = pool.query("SELECT name FROM users", (error, rows) => {
        expect([error, rows], round).toEqual([null, [{ name: "Ada" }]]);
      });
      await once(command, "end");
    }
    await called((done) => pool.execute("UPDATE users SET name = ?", ["Bob"], done));
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    const connection = await called<Awaited<ReturnType<Pool["getConnection"]>>>((done) =>
      pool.getConnection(done as never),
    );
    const rows = await called((done) => connection.query("SELECT name FROM users", done as never));
    expect(rows).toEqual([{ name: "Bob" }]);
    pool.releaseConnection(connection as never);
    expect((await pool.promise().query("SELECT name FROM users"))[0]).toEqual([{ name: "Bob" }]);
    await expect(called((done) => pool.query("SELECT nothing", done))).rejects.toThrow("nothing");
  });

  test("streams past the cache, and invalidates what is written without a callback", async () => {
    const pool = watched(callbackPool());
    const names: unknown[] = [];
    for await (const row of pool.query("SELECT name FROM users").stream()) names.push(row);
    expect(names).toEqual([{ name: "Ada" }]);
    expect(await db.cache.keys()).toEqual([]);
    await once(pool.query("UPDATE users SET name = 'Bob'"), "end");
    // What is read next waits for the statement before it.
    expect((await pool.promise().query("SELECT name FROM users"))[0]).toEqual([{ name: "Bob" }]);
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    const connection = watched(createConnection(db.mariadb.at(db.name)));
    db.atEnd(async () => connection.destroy());
    const found: unknown[] = [];
    for await (const row of connection.query("SELECT name FROM users").stream()) found.push(row);
    expect(found).toEqual([{ name: "Bob" }]);
  });

  test("answers a connection that its user closes", async () => {
    const connection = watched(await db.connection());
    await connection.query("SELECT name FROM users");
    const writing = connection.query("UPDATE users SET name = 'Bob' WHERE SLEEP(60) = 0");
    const failed = expect(writing).rejects.toThrow("closed during a statement");
    const isSleeping = async () => {
      const [found] = await db.raw.query<RowDataPacket[]>(
        "SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'",
      );
      return found.length > 0;
    };
    await until(isSleeping, { what: "the statement runs" });
    connection.destroy();
    await db.raw.query(`KILL ${connection.threadId}`);
    await failed;
    expect(db.cache.invalidated).toEqual([["table:users"]]);
  });
});
