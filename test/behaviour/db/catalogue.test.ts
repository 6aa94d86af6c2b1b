// What only the database's catalogue knows: which functions are its own, what views read, and what a write touches.
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { cachedDependency, testDatabase } from "../../db/database.ts";
import { knexRows, sqliteKnex } from "../../db/knex-session.ts";
import { sqliteFile } from "../../db/sqlite.ts";

const EVERYTHING = ["table:*"];

describe("over PostgreSQL", () => {
  const db = testDatabase();
  const watched = <S extends object>(session: S, tableName: string | string[] = "*"): S =>
    cachedDependency(() => session, { cache: db.cache, tableName })();

  /** Whether the second of two reads came from the cache. */
  const isCached = async (session: pg.Pool, text: string): Promise<boolean> => {
    const before = (await db.cache.keys()).length;
    for (let round = 0; round < 3; round++) await session.query(text);
    return (await db.cache.keys()).length > before;
  };

  describe("a function", () => {
    test.each([
      ["that is immutable is no obstacle", "SELECT doubled(id) FROM users", true, false],
      ["that is stable is", "SELECT looked_up(id) FROM users", false, true],
      [
        "that hides behind the name of a built-in one may write anything",
        "SELECT log(name) FROM users",
        false,
        true,
      ],
      [
        "that hides behind the name of a harmless one may, too",
        "SELECT random(name) FROM users",
        false,
        true,
      ],
      [
        "of an aggregate is not trusted, although it looks immutable",
        "SELECT joined(name) FROM users",
        false,
        true,
      ],
      [
        "of the database that no list has is trusted if it is immutable",
        "SELECT hashtext(name) FROM users",
        true,
        false,
      ],
      [
        "of the database that is stable does not write",
        "SELECT pg_collation_for(name) FROM users",
        false,
        false,
      ],
    ])("%s", async (_, text, cached, invalidates) => {
      await db.raw.query(`
        CREATE FUNCTION doubled(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 * 2';
        CREATE FUNCTION looked_up(int) RETURNS text STABLE LANGUAGE sql AS 'SELECT name FROM users WHERE id = $1';
        CREATE FUNCTION log(text) RETURNS int LANGUAGE sql AS 'INSERT INTO orders VALUES (length($1)) ON CONFLICT DO NOTHING RETURNING 1';
        CREATE FUNCTION random(text) RETURNS int LANGUAGE sql AS 'INSERT INTO orders VALUES (length($1)) ON CONFLICT DO NOTHING RETURNING 1';
        CREATE AGGREGATE joined(text) (SFUNC = textcat, STYPE = text, INITCOND = '')`);
      const session = watched(db.pool());
      expect(await isCached(session, text)).toBe(cached);
      expect(db.cache.invalidated.length > 0).toBe(invalidates);
    });

    test("that is made later is noticed by the next load", async () => {
      const session = watched(db.pool());
      expect(await isCached(session, "SELECT upper(name), id FROM users")).toBe(true);
      await db.raw.query(
        "CREATE FUNCTION upper(int) RETURNS int LANGUAGE sql AS 'INSERT INTO orders VALUES ($1) ON CONFLICT DO NOTHING RETURNING 1'",
      );
      await session.query("UPDATE users SET name = 'Bob'");
      expect(await isCached(session, "SELECT upper(name), upper(id) FROM users")).toBe(false);
      expect(db.cache.invalidated.at(-1)).toEqual(EVERYTHING);
    });
  });

  describe("a function that is redefined, and writes from then on", () => {
    const noted = (volatility: string, body: string): string =>
      `CREATE OR REPLACE FUNCTION noted(text) RETURNS text ${volatility} LANGUAGE sql AS '${body}'`;

    test.each([
      ["a write", "UPDATE users SET name = noted(name)"],
      ["a read through a pool", "SELECT noted(name) FROM users"],
      ["a read over a connection", "SELECT noted(name) FROM users", true],
    ])("is noticed by %s", async (_, text, isHeld = false) => {
      await db.raw.query(noted("IMMUTABLE", "SELECT $1"));
      const pool = db.pool();
      const session = watched(isHeld ? await db.client() : pool, ["users", "orders"]) as pg.Pool;
      const orders = async () =>
        (await watched(pool, ["users", "orders"]).query("SELECT id FROM orders")).rows;
      for (let round = 0; round < 2; round++) await session.query(text);
      await db.cache.cache.clear();
      expect([await orders(), await orders()]).toEqual([[], []]);
      await db.raw.query(noted("VOLATILE", "INSERT INTO orders VALUES (7) RETURNING $1"));
      await session.query(text);
      expect(await orders()).toEqual([{ id: 7 }]);
    });
  });

  describe("a view", () => {
    test("is invalidated with the tables that it reads, at any depth", async () => {
      await db.raw.query(`
        CREATE VIEW names AS SELECT id, lower(name) AS name FROM users;
        CREATE VIEW buyers AS SELECT n.name FROM names n JOIN orders o ON o.user_id = n.id`);
      const session = watched(db.pool());
      const buyers = async () => (await session.query("SELECT name FROM buyers")).rows;
      expect([await buyers(), await buyers()]).toEqual([[], []]);
      expect(await db.cache.keys()).toHaveLength(1);
      await session.query("INSERT INTO orders VALUES (1, 1)");
      expect(await buyers()).toEqual([{ name: "ada" }]);
      await session.query("UPDATE users SET name = 'Bob'");
      expect(await buyers()).toEqual([{ name: "bob" }]);
      await session.query("UPDATE names SET id = 2");
      expect(await buyers()).toEqual([]);
    });

    test.each([
      ["the moment", "SELECT id, now() AS at FROM users"],
      ["the day", "SELECT id, current_date AS at FROM users"],
      ["a setting", "SELECT id, current_setting('app.tenant', true) AS tenant FROM users"],
      ["the user", "SELECT id FROM users WHERE name = current_user"],
      ["a function of the application", "SELECT id, own(name) FROM users"],
      ["a table with row level security", "SELECT id FROM secrets"],
      ["a text that may mean now", "SELECT id, (name || '')::date AS day FROM users WHERE false"],
      ["a sample", "SELECT id FROM users TABLESAMPLE system (50)"],
    ])("of %s is not cached", async (_, query) => {
      await db.raw.query(`
        CREATE FUNCTION own(text) RETURNS text STABLE LANGUAGE sql AS 'SELECT $1';
        CREATE TABLE secrets (id int);
        ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
        CREATE VIEW shown AS ${query};
        CREATE VIEW outer_one AS SELECT * FROM shown`);
      expect(await isCached(watched(db.pool()), "SELECT * FROM outer_one")).toBe(false);
    });

    test("of dates and formats is cached: their settings are in the key", async () => {
      await db.raw.query(
        "CREATE VIEW shown AS SELECT id, to_char('2020-01-01'::timestamptz, 'YYYY'), date '2020-01-01' < '2020-01-01'::timestamptz AS b FROM users",
      );
      expect(await isCached(watched(db.pool()), "SELECT * FROM shown")).toBe(true);
    });

    test("that is materialized changes when it is refreshed", async () => {
      await db.raw.query("CREATE MATERIALIZED VIEW kept AS SELECT name FROM users");
      const [session, other] = [watched(db.pool(), "kept"), watched(db.pool(), "orders")];
      const names = async () => (await session.query("SELECT name FROM kept")).rows;
      expect([await names(), await names()]).toEqual([[{ name: "Ada" }], [{ name: "Ada" }]]);
      await db.changeBehind("Bob");
      expect(await names()).toEqual([{ name: "Ada" }]);
      await other.query("REFRESH MATERIALIZED VIEW kept");
      expect(await names()).toEqual([{ name: "Bob" }]);
    });
  });

  test("a table and its partitions are invalidated with each other", async () => {
    await db.raw.query(`
      CREATE TABLE parted (id int, k int) PARTITION BY RANGE (k);
      CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);
      CREATE TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (20);
      CREATE TABLE base (id int);
      CREATE TABLE derived () INHERITS (base)`);
    const session = watched(db.pool());
    const count = async (table: string) =>
      (await session.query(`SELECT count(*)::int AS n FROM ${table}`)).rows[0].n;
    const counts = async () => [
      await count("parted"),
      await count("low"),
      await count("high"),
      await count("base"),
    ];
    expect([await counts(), await counts()]).toEqual([
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ]);
    expect(await db.cache.keys()).toHaveLength(4);
    await session.query("INSERT INTO parted VALUES (1, 1)");
    expect(await counts()).toEqual([1, 1, 0, 0]);
    await session.query("INSERT INTO high VALUES (1, 11)");
    expect(await counts()).toEqual([2, 1, 1, 0]);
    expect(db.cache.invalidated.at(-1)).not.toContain("table:low");
    await session.query("INSERT INTO derived VALUES (1)");
    expect(await counts()).toEqual([2, 1, 1, 1]);
  });

  describe("a write", () => {
    const CASCADE = "ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE";
    const TRIGGER = `CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF (TG_OP = 'UPDATE') THEN INSERT INTO orders (id, user_id) VALUES (100, lower('1')::int); END IF; RETURN NULL; END $$;
      CREATE TRIGGER noted AFTER UPDATE ON users FOR EACH ROW EXECUTE FUNCTION noted()`;

    test("invalidates what cascades, at any depth", async () => {
      await db.raw.query(`INSERT INTO orders VALUES (1, 1); ${CASCADE};
        CREATE TABLE items (id int, order_id int REFERENCES orders ON DELETE SET NULL); INSERT INTO items VALUES (1, 1)`);
      const session = watched(db.pool(), ["users", "orders", "items"]);
      const items = async () => (await session.query("SELECT order_id FROM items")).rows;
      expect([await items(), await items()]).toEqual([[{ order_id: 1 }], [{ order_id: 1 }]]);
      await session.query("DELETE FROM users");
      expect(await items()).toEqual([{ order_id: null }]);
      expect([...db.cache.invalidated.at(-1)!].sort()).toEqual([
        "table:items",
        "table:orders",
        "table:users",
      ]);
    });

    test.each([
      ["a trigger writes", TRIGGER],
      ["a rule writes", "CREATE RULE noted AS ON UPDATE TO users DO ALSO INSERT INTO orders VALUES (100, 1)"],
      [
        "the trigger of another table writes",
        `${TRIGGER.replaceAll("orders", "middle")};
        CREATE TABLE middle (id int, user_id int); CREATE FUNCTION further() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO orders VALUES (NEW.id, 1); RETURN NEW; END $$;
        CREATE TRIGGER further BEFORE INSERT ON middle FOR EACH ROW EXECUTE FUNCTION further()`,
      ],
      [
        "code writes that cannot be read",
        `${TRIGGER.replace("INSERT INTO orders (id, user_id) VALUES (100, lower('1')::int)", "EXECUTE 'INSERT INTO orders VALUES (100, 1)'")}`,
      ],
    ])("invalidates what %s", async (_, schema) => {
      await db.raw.query(schema);
      const session = watched(db.pool(), ["users", "orders"]);
      const orders = async () => (await session.query("SELECT id FROM orders")).rows;
      expect([await orders(), await orders()]).toEqual([[], []]);
      await session.query("UPDATE users SET name = 'Bob'");
      expect(await orders()).toEqual([{ id: 100 }]);
      await db.raw.query("DELETE FROM orders");
      await session.query("BEGIN; UPDATE users SET name = 'Cy'; COMMIT");
      expect(await orders()).toEqual([{ id: 100 }]);
    });

    test("invalidates nothing else where a trigger only changes its own row", async () => {
      await db.raw.query(`CREATE FUNCTION stamped() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.name := NEW.name || to_char(now(), 'YYYY'); PERFORM pg_notify('changed', NEW.name); RETURN NEW; END $$;
        CREATE TRIGGER stamped BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION stamped()`);
      const session = watched(db.pool());
      await session.query("UPDATE users SET name = 'Bob'");
      expect(db.cache.invalidated).toEqual([["table:users"]]);
    });

    test("knows of a trigger that was made after the last one", async () => {
      const session = watched(db.pool(), ["users", "orders"]);
      const orders = async () => (await session.query("SELECT id FROM orders")).rows;
      await session.query("UPDATE users SET name = 'Bob'");
      expect(await orders()).toEqual([]);
      await db.raw.query(TRIGGER);
      await session.query("UPDATE users SET name = 'Cy'");
      expect(await orders()).toEqual([{ id: 100 }]);
      await db.raw.query(
        "DELETE FROM orders; CREATE OR REPLACE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
      );
      await session.query("UPDATE users SET name = 'Di'");
      db.cache.invalidated.length = 0;
      await session.query("UPDATE users SET name = 'Ed'");
      expect(db.cache.invalidated).toEqual([["table:users"]]);
    });

    test.each([
      ["next to code that may write anything", "BEGIN; DELETE FROM users; DO 'BEGIN PERFORM 1; END'; COMMIT"],
      ["of a partition that is truncated", "TRUNCATE orders_1"],
    ])("%s invalidates what it touches in the tables of another session", async (_, text) => {
      await db.raw.query(`DROP TABLE orders; CREATE TABLE orders (id int, user_id int) PARTITION BY LIST (id);
        CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1); INSERT INTO orders VALUES (1, 1); ${CASCADE}`);
      const session = watched(db.pool(), "orders");
      const orders = async () => (await session.query("SELECT id FROM orders")).rows;
      expect([await orders(), await orders()]).toEqual([[{ id: 1 }], [{ id: 1 }]]);
      await watched(db.pool(), "users").query(text);
      expect(await orders()).toEqual([]);
    });

    test("that is committed past the session invalidates what it touched", async () => {
      await db.raw.query(`INSERT INTO orders VALUES (1, 1); ${CASCADE}`);
      const session = watched(db.pool(), ["users", "orders"]);
      const orders = async () => (await session.query("SELECT id FROM orders")).rows;
      expect(await orders()).toEqual([{ id: 1 }]);
      const client = await db.client();
      await client.query("BEGIN");
      await watched(client, "users").query("DELETE FROM users");
      await client.query("COMMIT");
      expect(await orders()).toEqual([]);
    });
  });
});

describe("over SQLite", () => {
  const db = sqliteFile();

  test.each([
    [
      "cascades",
      "CREATE TABLE notes (id INTEGER PRIMARY KEY, user_id INT REFERENCES users ON DELETE CASCADE)",
      "DELETE FROM users",
    ],
    [
      "a trigger writes",
      `CREATE TABLE notes (id INTEGER PRIMARY KEY, user_id INT);
       CREATE TRIGGER noted AFTER DELETE ON users BEGIN DELETE FROM notes WHERE user_id = OLD.id; END`,
      "DELETE FROM users",
    ],
  ])("a write invalidates what %s", async (_, schema, write) => {
    const session = cachedDependency(() => sqliteKnex(db), { cache: db.cache, tableName: "*" })();
    await session.raw("PRAGMA foreign_keys = ON");
    // Learns the schema before it changes.
    await knexRows(session).write("Bob");
    db.raw.exec(schema);
    db.raw.exec("INSERT INTO notes VALUES (1, 1)");
    const notes = async () => session("notes").select("id");
    expect([await notes(), await notes()]).toEqual([[{ id: 1 }], [{ id: 1 }]]);
    expect(await db.cache.keys()).toHaveLength(1);
    await session.raw(write);
    expect(await notes()).toEqual([]);
    expect(new Set(db.cache.invalidated.at(-1))).toEqual(new Set(["table:users", "table:notes"]));
  });
});
