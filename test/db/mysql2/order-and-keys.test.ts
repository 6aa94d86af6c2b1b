// Sessions of mysql2 over MariaDB: calls that do not wait for each other, and what a result depends on besides rows.
import { once } from "node:events";
import { type Connection as CallbackConnection, createConnection, type PrepareStatementInfo } from "mysql2";
import type { Connection, Pool, RowDataPacket } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import { cachedPool } from "../../../src/db/mysql2.ts";
import { cachedDependency } from "../database.ts";
import { mysqlDatabase } from "../mysql-database.ts";

const db = mysqlDatabase();

const watched = <Session>(session: Session, tableName: string | string[] = "users"): Session =>
  cachedDependency(() => session, { cache: db.cache, tableName })();

const nameOf = async (executor: Pick<Connection, "query">, from = "users"): Promise<unknown> => {
  const [rows] = await executor.query<RowDataPacket[]>(`SELECT name FROM ${from} WHERE id = 1`);
  return rows[0]?.name;
};

/** Those that a command without a callback emits. */
async function rowsOf(command: { stream(): AsyncIterable<unknown> }): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const row of command.stream()) rows.push(row);
  return rows;
}

function callbackConnection(): CallbackConnection {
  const connection = watched(createConnection(db.mariadb.at(db.name)));
  db.atEnd(async () => connection.destroy());
  return connection;
}

describe("calls that do not wait for each other are carried out in their order", () => {
  test("a query and the end of its connection", async () => {
    const connection = callbackConnection();
    const [error, rows] = await new Promise<unknown[]>((resolve) => {
      connection.query("SELECT name FROM users", (...result) => resolve(result));
      connection.end();
    });
    expect([error, rows]).toEqual([null, [{ name: "Ada" }]]);
  });

  test("a query, a preparation, an execution, its close and a ping", async () => {
    const connection = callbackConnection();
    const order: unknown[] = [];
    connection.query("CREATE TABLE fresh AS SELECT 1 AS id", (error) => order.push(error));
    connection.prepare("SELECT id FROM fresh", (error, statement) => {
      order.push(error);
      statement.execute([], (failure, rows) => order.push(failure, rows));
      statement.close();
      connection.ping(() => order.push("ping"));
      connection.query("SELECT name FROM users", (_, rows) => order.push(rows));
      connection.ping(() => order.push("last"));
    });
    await new Promise((resolve) => {
      connection.once("end", resolve);
      const isOver = () => (order.at(-1) === "last" ? connection.end() : setImmediate(isOver));
      isOver();
    });
    expect(order).toEqual([null, null, null, [{ id: 1 }], "ping", [{ name: "Ada" }], "last"]);
  });

  test("a write and executions without a callback", async () => {
    const connection = callbackConnection();
    const statement = await new Promise<PrepareStatementInfo>((resolve, reject) => {
      connection.prepare("SELECT name FROM users WHERE id = ?", (error, made) =>
        error ? reject(error) : resolve(made),
      );
    });
    // The first statement of a connection is preceded by a question about it.
    connection.query("UPDATE users SET name = 'Bob'", () => {});
    const executed = rowsOf(connection.execute("SELECT name FROM users WHERE id = ?", [1]));
    connection.query("UPDATE users SET name = 'Cy'", () => {});
    const prepared = rowsOf(statement.execute([1]) as never);
    connection.query("UPDATE users SET name = 'Di'", () => {});
    expect([await executed, await prepared]).toEqual([[{ name: "Bob" }], [{ name: "Cy" }]]);
    expect(await rowsOf(connection.query("SELECT name FROM users"))).toEqual([{ name: "Di" }]);
    expect(await db.cache.keys()).toEqual([]);
    const written = connection.execute("UPDATE users SET name = ?", ["Ed"]);
    await once(written, "end");
    expect(db.cache.invalidated).toHaveLength(4);
    const failed = connection.execute("SELECT nothing FROM users");
    const [error] = await once(failed, "error");
    expect(error).toMatchObject({ code: "ER_BAD_FIELD_ERROR" });
    expect(() => connection.execute("SELECT ?", [undefined] as never)).toThrow("undefined");
  });

  test("with the values of their calls, whatever is done to them afterwards", async () => {
    const connection = callbackConnection();
    const values = [1];
    const found = await new Promise<unknown>((resolve, reject) => {
      connection.prepare("SELECT name FROM users WHERE id = ?", (error, statement) => {
        if (error) return reject(error);
        connection.query("INSERT INTO users VALUES (2, 'Bob')", () => {});
        statement.execute(values, (failure, rows) => (failure ? reject(failure) : resolve(rows)));
        values[0] = 2;
      });
    });
    expect(found).toEqual([{ name: "Ada" }]);
  });

  test("a query, another user and what that one may not read", async () => {
    await db.raw.query(
      `CREATE USER IF NOT EXISTS stranger@'%'; GRANT SELECT ON ${db.name}.orders TO stranger@'%'`,
    );
    const connection = watched(await db.connection());
    expect(await nameOf(connection)).toBe("Ada");
    const outcomes = await Promise.allSettled([
      nameOf(connection),
      connection.changeUser({ user: "stranger", database: db.name }),
      nameOf(connection),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  });

  test("a write and the release of its connection", async () => {
    const pool = watched(db.pool({ connectionLimit: 1 }));
    expect(await nameOf(pool)).toBe("Ada");
    const connection = await pool.getConnection();
    const writing = connection.query("UPDATE users SET name = 'Bob'");
    connection.release();
    const next = await pool.getConnection();
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    await writing;
    expect(await nameOf(next)).toBe("Bob");
    next.release();
  });
});

test("a cached pool hands out connections that have all methods of a transaction", async () => {
  const pool = cachedPool(db.pool(), { cache: db.cache, tableName: "users" });
  expect(await nameOf(pool)).toBe("Ada");
  const connection = await pool.getConnection();
  await connection.beginTransaction();
  await connection.query("UPDATE users SET name = ?", ["Bob"]);
  await connection.rollback();
  await connection.beginTransaction();
  await connection.execute("UPDATE users SET name = ?", ["Cy"]);
  expect(await nameOf(pool)).toBe("Ada");
  await connection.commit();
  await connection.ping();
  const statement = await connection.prepare("SELECT name FROM users");
  expect((await statement.execute([]))[0]).toEqual([{ name: "Cy" }]);
  expect(connection.escape("a'b")).toBe("'a\\'b'");
  connection.release();
  expect(await nameOf(pool)).toBe("Cy");
});

describe("what is read", () => {
  test("by a date has a key for each time zone that dates are sent in", async () => {
    await db.raw.query(`CREATE TABLE times (at datetime PRIMARY KEY, name text);
      INSERT INTO times VALUES ('2020-01-01 00:00:00', 'zero'), ('2020-01-01 05:00:00', 'five')`);
    const date = new Date("2020-01-01T00:00:00Z");
    const found: unknown[] = [];
    for (const timezone of ["Z", "+05:00"]) {
      const pool = watched(db.pool({ timezone }), "times");
      for (const method of ["query", "execute"] as const) {
        const read = (pool[method] as Pool["query"]).bind(pool);
        await read("SELECT 1");
        const [rows] = await read<RowDataPacket[]>("SELECT name FROM times WHERE at = ?", [date]);
        found.push(rows[0]?.name);
      }
    }
    expect(found).toEqual(["zero", "zero", "five", "five"]);
  });

  test("of a column that is computed of the session is not kept", async () => {
    await db.raw.query(`CREATE TABLE computed (id int PRIMARY KEY, name int AS (CONNECTION_ID()) VIRTUAL);
      CREATE TABLE derived (id int PRIMARY KEY, name int AS (ABS(id) + 1) VIRTUAL);
      CREATE VIEW shown AS SELECT * FROM computed;
      INSERT INTO computed (id) VALUES (1); INSERT INTO derived (id) VALUES (1)`);
    const pool = watched(db.pool(), ["computed", "derived", "shown"]);
    await nameOf(pool, "computed");
    await nameOf(pool, "shown");
    expect(await db.cache.keys()).toEqual([]);
    await nameOf(pool, "derived");
    expect(await db.cache.keys()).toHaveLength(1);
  });

  test.each([
    ["default_regex_flags", "''", "'DOTALL'", "SELECT 'a\\nb' REGEXP 'a.b' AS name FROM users"],
    [
      "max_recursive_iterations",
      "1000",
      "2",
      "WITH RECURSIVE t AS (SELECT id FROM users UNION ALL SELECT id + 1 FROM t WHERE id < 9) SELECT COUNT(*) FROM t",
    ],
  ])("under another %s has a key of its own", async (setting, first, second, statement) => {
    const connection = watched(await db.connection());
    await connection.query(`SET ${setting} = ${first}`);
    const [before] = await connection.query(statement);
    await connection.query(`SET ${setting} = ${second}`);
    expect((await connection.query(statement))[0]).not.toEqual(before);
  });

  test("with a session's last row in place of NULL is not kept", async () => {
    await db.raw.query("CREATE TABLE numbered (id int AUTO_INCREMENT PRIMARY KEY, name text)");
    const read = async (connection: Connection) =>
      (await connection.query("SELECT name FROM numbered WHERE id IS NULL"))[0];
    const [one, other] = [await db.connection(), await db.connection()].map((each) =>
      watched(each, "numbered"),
    );
    for (const each of [one!, other!]) await each.query("SET sql_auto_is_null = 1");
    await one!.query("INSERT INTO numbered (name) VALUES ('a')");
    expect(await read(one!)).toEqual([{ name: "a" }]);
    expect(await read(other!)).toEqual([]);
  });

  test("where nobody can tell any more whether there are temporary tables is not kept", async () => {
    const connection = watched(await db.connection());
    await connection.query("CREATE TEMPORARY TABLE users SELECT 1 AS id, 'temporary' AS name");
    await connection.query("FLUSH STATUS");
    expect(await nameOf(connection)).toBe("temporary");
    expect(await nameOf(watched(db.pool()))).toBe("Ada");
  });
});
