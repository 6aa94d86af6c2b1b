// What commits on MySQL and MariaDB, by whatever statement and whoever sends it, and what the catalogue adds to it.
import type { Connection, Pool, PoolConnection, RowDataPacket } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import { cachedDependency } from "../database.ts";
import { mysqlDatabase } from "../mysql-database.ts";
import { mysql2Rows } from "../mysql2-session.ts";
import { RACE_AGAIN, race, raceSeed, slowCache } from "../race.ts";

const db = mysqlDatabase();

const watched = <Session>(session: Session, tableName: string | string[] = "users"): Session =>
  cachedDependency(() => session, { cache: db.cache, tableName })();

type Executor = Pick<Connection, "query">;

const nameOf = async (executor: Executor, from = "users"): Promise<unknown> => {
  const [rows] = await executor.query<RowDataPacket[]>(`SELECT name FROM ${from} WHERE id = 1`);
  return rows[0]?.name;
};

/** Reads through one pool what another connection writes. */
function reader(tableName: string | string[] = "users"): Pool {
  return watched(db.pool(), tableName);
}

describe("a unit of work that begins and commits by itself", () => {
  async function* transaction(pool: Pool): AsyncGenerator<PoolConnection> {
    const connection = await pool.getConnection();
    let isDone = false;
    try {
      await connection.query("BEGIN");
      yield connection;
      isDone = true;
    } finally {
      await connection.query(isDone ? "COMMIT" : "ROLLBACK");
      connection.release();
    }
  }

  test.each(["query", "execute"] as const)("invalidates what it wrote by %s", async (method) => {
    const pool = reader();
    const unitOfWork = cachedDependency(transaction, { cache: db.cache, tableName: "users" });
    expect(await nameOf(pool)).toBe("Ada");
    for await (const connection of unitOfWork(db.pool())) {
      await (connection[method] as Connection["query"])("UPDATE users SET name = 'Bob'");
      expect(await nameOf(connection)).toBe("Bob");
      expect(await nameOf(pool)).toBe("Ada");
      expect(db.cache.invalidated).toEqual([]);
    }
    expect(await nameOf(pool)).toBe("Bob");
    expect(db.cache.invalidated).toEqual([["table:users"]]);
  });

  test("invalidates nothing when its consumer throws", async () => {
    const pool = reader();
    const unitOfWork = cachedDependency(transaction, { cache: db.cache, tableName: "users" });
    await nameOf(pool);
    const work = async () => {
      for await (const connection of unitOfWork(db.pool())) {
        await connection.query("UPDATE users SET name = 'Bob'");
        throw new Error("undo");
      }
    };
    await expect(work()).rejects.toThrow("undo");
    expect(db.cache.invalidated).toEqual([]);
    expect(await nameOf(pool)).toBe("Ada");
  });

  test("never stores what it read after an unwatched BEGIN", async () => {
    const real = await db.connection();
    await real.query("BEGIN");
    await real.query("UPDATE users SET name = 'dirty'");
    const connection = watched(real);
    expect(await nameOf(connection)).toBe("dirty");
    await real.query("ROLLBACK");
    expect(await nameOf(reader())).toBe("Ada");
    expect(await nameOf(connection)).toBe("Ada");
  });
});

describe("within a transaction", () => {
  test.each([
    ["CREATE TABLE others (id int)", 1],
    ["ALTER TABLE orders ADD note text", 1],
    ["TRUNCATE TABLE orders", 1],
    ["START TRANSACTION", 1],
    ["LOCK TABLES orders READ", 1],
    ["SET autocommit = 1", 0],
    ["CREATE TABLE users (id int)", 1],
    ["CALL ends()", 1],
    ["CALL fails()", 1],
    ["COMMIT AND CHAIN", 1],
    ["CREATE TEMPORARY TABLE notes (id int)", 0],
    ["SELECT 1", 0],
    ["INSERT INTO users VALUES (1, 'again')", 0],
  ])("%s commits, or not, what was written before", async (statement, commits) => {
    await db.raw.query(`CREATE PROCEDURE ends() COMMIT;
      CREATE PROCEDURE fails() BEGIN COMMIT; SIGNAL SQLSTATE '45000'; END`);
    const pool = reader();
    expect(await nameOf(pool)).toBe("Ada");
    const connection = watched(await db.connection());
    await connection.query("BEGIN");
    await connection.query("UPDATE users SET name = 'Bob'");
    await connection.query(statement).catch(() => {});
    const [[row]] = await db.raw.query<RowDataPacket[]>("SELECT name FROM users");
    expect(row?.name).toBe(commits === 1 ? "Bob" : "Ada");
    expect(await nameOf(pool)).toBe(row?.name);
    await connection.query("ROLLBACK");
    expect(await nameOf(pool)).toBe(row?.name);
  });

  test("with autocommit off every statement belongs to one, and COMMIT ends it", async () => {
    const pool = reader();
    await nameOf(pool);
    const connection = watched(await db.connection());
    await connection.query("SET autocommit = 0");
    await connection.query("UPDATE users SET name = 'Bob'");
    expect(await nameOf(connection)).toBe("Bob");
    expect(db.cache.invalidated.flat()).not.toContain("table:users");
    expect(await nameOf(pool)).toBe("Ada");
    await connection.commit();
    expect(await nameOf(pool)).toBe("Bob");
    await connection.query("UPDATE users SET name = 'Cy'");
    await connection.query("CREATE TABLE others (id int)");
    expect(await nameOf(pool)).toBe("Cy");
    await connection.query("UPDATE users SET name = 'Di'");
    await connection.query("SET autocommit = 1");
    expect(await nameOf(pool)).toBe("Di");
  });

  test("that a deadlock has ended, nothing is invalidated and the next read is fresh", async () => {
    await db.raw.query("INSERT INTO users VALUES (2, 'Bob')");
    const pool = reader();
    const connection = watched(await db.connection());
    await nameOf(pool);
    await connection.query("BEGIN");
    await connection.query("UPDATE users SET name = 'lost' WHERE id = 1");
    await db.raw.query("BEGIN");
    // The one that has changed less is given up.
    await db.raw.query("INSERT INTO orders VALUES (1, 1), (2, 1), (3, 1)");
    await db.raw.query("UPDATE users SET name = 'kept' WHERE id = 2");
    const waiting = db.raw.query("UPDATE users SET name = 'kept' WHERE id = 1");
    const ended = await connection
      .query("UPDATE users SET name = 'lost' WHERE id = 2")
      .catch((error) => error.code);
    expect(ended).toBe("ER_LOCK_DEADLOCK");
    expect(db.cache.invalidated).toEqual([]);
    await waiting;
    await db.raw.query("COMMIT");
    expect(await nameOf(connection)).toBe("Ada");
    await db.cache.invalidateTags(["table:users"]);
    expect(await nameOf(connection)).toBe("kept");
  });
});

describe("outside of a transaction", () => {
  test.each([
    "INSERT INTO users VALUES (1, 'Bob') ON DUPLICATE KEY UPDATE name = VALUES(name)",
    "REPLACE INTO users VALUES (1, 'Bob')",
    "UPDATE users u LEFT JOIN orders o ON o.user_id = u.id SET u.name = 'Bob'",
    "DELETE users FROM users LEFT JOIN orders ON true; INSERT INTO users VALUES (1, 'Bob')",
    "UPDATE users SET name = 'Bob'; SELECT nothing",
    "CALL renames()",
    "BEGIN NOT ATOMIC UPDATE users SET name = 'Bob'; END",
    "EXECUTE IMMEDIATE 'UPDATE users SET name = ''Bob'''",
    "SELECT renaming()",
    "SET @x = renaming()",
    "/*! UPDATE users SET name = 'Bob' */",
    "SET STATEMENT lock_wait_timeout = 5 FOR UPDATE users SET name = 'Bob'",
  ])("%s invalidates", async (statement) => {
    await db.raw.query(`CREATE PROCEDURE renames() UPDATE users SET name = 'Bob';
      CREATE FUNCTION renaming() RETURNS int BEGIN UPDATE users SET name = 'Bob'; RETURN 1; END`);
    const pool = reader();
    expect(await nameOf(pool)).toBe("Ada");
    await watched(await db.connection({ multipleStatements: true }))
      .query(statement)
      .catch(() => {});
    expect(await nameOf(pool)).toBe("Bob");
  });

  test("a prepared statement invalidates, and is not cached", async () => {
    const connection = watched(await db.connection());
    const pool = reader();
    expect(await nameOf(pool)).toBe("Ada");
    const statement = await connection.prepare("UPDATE users SET name = ?");
    await statement.execute(["Bob"]);
    expect(await nameOf(pool)).toBe("Bob");
    const read = await connection.prepare("SELECT name FROM users WHERE id = ?");
    await db.changeBehind("Cy");
    expect((await read.execute([1]))[0]).toEqual([{ name: "Cy" }]);
  });
});

describe("reads that are not the same for everybody", () => {
  const changed = async (executor: Executor, from = "users"): Promise<boolean> => {
    await nameOf(executor, from);
    await db.changeBehind("Bob");
    return (await nameOf(executor, from)) === "Bob";
  };

  test.each([
    [
      "a temporary table hides the real one",
      "CREATE TEMPORARY TABLE users SELECT 1 AS id, 'temporary' AS name",
    ],
    ["a procedure may have made one", "CALL hides()"],
    ["it reads what is not committed", "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"],
    ["the next statement does", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"],
    ["it holds a lock", "DO GET_LOCK('a', 1)"],
  ])("are not stored when %s", async (_, statement) => {
    await db.raw.query(
      "CREATE PROCEDURE hides() CREATE TEMPORARY TABLE users SELECT 1 AS id, 'temporary' AS name",
    );
    const connection = watched(await db.connection());
    await connection.query(statement);
    await nameOf(connection);
    expect(await db.cache.keys()).toEqual([]);
  });

  test("of a table whose engine does not undo, or that is only read by its variables, bypass the cache", async () => {
    await db.raw.query(`CREATE TABLE old (id int PRIMARY KEY, name text) ENGINE = Aria; INSERT INTO old VALUES (1, 'a');
      CREATE VIEW sees AS SELECT users.id, users.name FROM users WHERE CURRENT_USER() <> '';
      CREATE VIEW looks AS SELECT users.id, UPPER(users.name) AS name FROM users`);
    const pool = reader(["users", "old", "sees", "looks"]);
    await nameOf(pool, "old");
    expect(await db.cache.keys()).toEqual([]);
    expect(await changed(pool, "sees")).toBe(true);
    await pool.query("SET @x = 1");
    await pool.query("SELECT @x, name FROM users");
    expect(await db.cache.keys()).toEqual([]);
    await nameOf(pool, "looks");
    expect(await db.cache.keys()).toHaveLength(1);
  });

  test("have keys of their own under other settings", async () => {
    await db.raw.query(
      "CREATE TABLE times (id int PRIMARY KEY, name timestamp); INSERT INTO times VALUES (1, '2020-01-01')",
    );
    const connection = watched(await db.connection({ dateStrings: true }), "times");
    const before = await nameOf(connection, "times");
    await connection.query("SET time_zone = '+05:00'");
    expect(await nameOf(connection, "times")).not.toBe(before);
    expect(await db.cache.keys()).toHaveLength(2);
  });
});

describe("the catalogue", () => {
  test("knows the tables of a view, and what is written through one", async () => {
    await db.raw.query(`CREATE VIEW names AS SELECT id, name FROM users;
      CREATE VIEW upper AS SELECT id, UPPER(name) AS name FROM names`);
    const pool = reader(["users", "upper"]);
    expect(await nameOf(pool, "upper")).toBe("ADA");
    await pool.query("UPDATE users SET name = 'Bob'");
    expect(await nameOf(pool, "upper")).toBe("BOB");
    await nameOf(pool);
    await pool.query("UPDATE names SET name = 'Cy'");
    expect(await nameOf(pool)).toBe("Cy");
    expect(await nameOf(pool, "upper")).toBe("CY");
    // A view that is replaced is another one for the next load.
    await pool.query("CREATE OR REPLACE VIEW upper AS SELECT id, CURRENT_TIMESTAMP AS name FROM names");
    const first = await db.cache.keys();
    await nameOf(pool, "upper");
    expect((await db.cache.keys()).length).toBeLessThanOrEqual(first.length);
  });

  test("knows what triggers and cascades write, and what those do", async () => {
    await db.raw.query(`CREATE TABLE log (id int PRIMARY KEY, name text); INSERT INTO log VALUES (1, '');
      CREATE TABLE notes (id int PRIMARY KEY, name text, log_id int, FOREIGN KEY (log_id) REFERENCES log (id) ON DELETE CASCADE);
      CREATE TABLE pages (id int PRIMARY KEY, name text, note_id int, FOREIGN KEY (note_id) REFERENCES notes (id) ON DELETE SET NULL);
      INSERT INTO notes VALUES (1, 'note', 1); INSERT INTO pages VALUES (1, 'page', 1);
      CREATE TRIGGER logs AFTER UPDATE ON users FOR EACH ROW UPDATE log SET name = NEW.name;
      CREATE TRIGGER drops AFTER DELETE ON users FOR EACH ROW DELETE FROM log WHERE id = OLD.id`);
    const pool = reader("*");
    const other = watched(db.pool(), "users");
    expect(await nameOf(pool, "log")).toBe("");
    expect(await nameOf(pool, "notes")).toBe("note");
    const page = async () =>
      (await pool.query<RowDataPacket[]>("SELECT note_id FROM pages WHERE id = 1"))[0][0]?.note_id;
    expect(await page()).toBe(1);
    const limited = watched(await db.connection());
    await limited.query("SET sql_select_limit = 1");
    await limited.query("UPDATE users SET name = 'Bob'");
    expect(await nameOf(pool, "log")).toBe("Bob");
    await other.query("DELETE FROM users");
    expect(await nameOf(pool, "notes")).toBe(undefined);
    expect(await page()).toBe(null);
  });

  test("is not trusted where the user may not see triggers", async () => {
    await db.raw.query(`CREATE TABLE log (id int PRIMARY KEY, name text); INSERT INTO log VALUES (1, '');
      CREATE TRIGGER logs AFTER UPDATE ON users FOR EACH ROW UPDATE log SET name = NEW.name;
      CREATE USER IF NOT EXISTS guest@'%'; GRANT SELECT, UPDATE ON ${db.name}.* TO guest@'%'`);
    const pool = watched(db.pool({}, "guest"), ["users", "log"]);
    expect(await nameOf(pool, "log")).toBe("");
    await pool.query("UPDATE users SET name = 'Bob'");
    expect(await nameOf(pool, "log")).toBe("Bob");
    expect(db.cache.invalidated.at(-1)).toEqual(["table:users", "table:log"]);
  });

  test("decides about functions of the application", async () => {
    await db.raw.query(`CREATE FUNCTION pure_one(x int) RETURNS int DETERMINISTIC NO SQL RETURN x;
      CREATE FUNCTION looks(x int) RETURNS int DETERMINISTIC READS SQL DATA RETURN (SELECT COUNT(*) FROM orders)`);
    const pool = reader();
    await pool.query("SELECT pure_one(id) FROM users");
    expect(await db.cache.keys()).toHaveLength(1);
    await pool.query("SELECT looks(id) FROM users");
    expect(await db.cache.keys()).toHaveLength(0);
    expect(db.cache.invalidated).toEqual([["table:users"]]);
  });
});

test("nobody sees an older row, or one that is not committed, while others read and write at random", async () => {
  await db.raw.query(`CREATE VIEW shown AS SELECT id, name FROM users;
    CREATE TABLE source (id int PRIMARY KEY, name varchar(100)); INSERT INTO source VALUES (1, 'Ada');
    CREATE TRIGGER copies AFTER UPDATE ON source FOR EACH ROW UPDATE users SET name = NEW.name WHERE id = NEW.id;
    CREATE PROCEDURE renames(IN given varchar(100)) BEGIN START TRANSACTION; UPDATE users SET name = given; COMMIT; END`);
  const cache = slowCache(db.cache, raceSeed);
  const open = () => cachedDependency(() => db.pool(), { cache, tableName: ["users", "shown"] })();
  /** Each writes in a way of its own, and reads the table or the view. */
  const ways: readonly ((executor: Executor, name: string) => Promise<unknown>)[] = [
    (executor, name) => executor.query("UPDATE users SET name = ? WHERE id = 1", [name]),
    (executor, name) => executor.query("UPDATE source SET name = ? WHERE id = 1", [name]),
    (executor, name) => executor.query("UPDATE shown SET name = ? WHERE id = 1", [name]),
  ];
  const sessions = [0, 1, 2, 3].map((at) => {
    const pool = open();
    const way = ways[at % ways.length]!;
    const from = at % 2 === 0 ? "users" : "shown";
    return {
      ...mysql2Rows(pool, way),
      read: async () => String(await nameOf(pool, from)),
      writeRaw: (name: string) => pool.query("CALL renames(?)", [name]),
    };
  });
  const outcome = await race("Ada", { readers: sessions, writers: sessions.slice(0, 3), rounds: 25 });
  expect(outcome.violations, RACE_AGAIN).toEqual([]);
  expect(outcome.commits, RACE_AGAIN).toBeGreaterThan(20);
  expect(cache.loads, RACE_AGAIN).toBeLessThan(outcome.reads);
});
