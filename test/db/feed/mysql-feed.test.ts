// A feed of MariaDB on a real server: every commit of an outside program arrives, once it is visible.
import mysql, { type Connection } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type MysqlInternals, startMysqlFeed } from "../../../src/db/feed/start.ts";
import { type Feed, type MysqlFeedOptions, rowsTag, rowTag } from "../../../src/db/feed.ts";
import { tableTag } from "../../../src/db/tracking/table-tags.ts";
import { XCache } from "../../../src/xcache.ts";
import { type MariadbServer, startMariadb } from "../../support/mariadb.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

let server: MariadbServer;
let redis: RedisServer;
let name: string;
let outside: Connection;
let closing: (() => Promise<unknown>)[] = [];
let prefixes = 0;

beforeAll(async () => {
  [server, redis] = await Promise.all([
    startMariadb(["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]),
    startRedis(),
  ]);
});
afterAll(() => Promise.all([server?.stop(), redis?.stop()]));
beforeEach(async () => {
  prefixes++;
  name = await server.createDatabase();
  outside = await outsider();
  await outside.query("CREATE TABLE users (id int PRIMARY KEY, name varchar(50) NOT NULL) ENGINE=InnoDB");
  await outside.query("INSERT INTO users VALUES (1, 'u1'), (2, 'u2'), (3, 'u3')");
});
afterEach(async () => {
  const ends = closing.reverse();
  closing = [];
  await Promise.allSettled(ends.map((end) => end()));
});

async function outsider(database = name): Promise<Connection> {
  const connection = await mysql.createConnection({ ...server.at(database), multipleStatements: true });
  connection.on("error", () => {});
  closing.push(() => connection.end());
  return connection;
}

/** One process of an application, with entries that carry the tags of tables and rows. */
interface Member {
  readonly cache: XCache;
  readonly feed: Feed;
  /** Stores an entry with these tags; says whether it is still there when asked. */
  keep(key: string, ...tags: string[]): Promise<void>;
  has(key: string): Promise<boolean>;
  /** Resolves once the entry is gone. */
  gone(key: string): Promise<unknown>;
}

function start({
  internals = {},
  ...options
}: Partial<MysqlFeedOptions> & { internals?: MysqlInternals } = {}): Member {
  const cache = new XCache({ kvUrl: redis.url, keyPrefix: `mysql${prefixes}` });
  const connection = server.at(name) as object as Record<string, unknown>;
  const feed = startMysqlFeed({ connection, cache, tables: "users", silentFor: 30, ...options }, internals);
  closing.push(async () => {
    await feed.close();
    await cache.disconnect();
  });
  const has = async (key: string): Promise<boolean> => (await cache.get(key)) !== undefined;
  return {
    cache,
    feed,
    keep: (key, ...tags) => cache.set(key, 1, { tags, ttl: 3_600 }),
    has,
    gone: (key) => until(async () => !(await has(key)), { what: `${key} is invalidated` }),
  };
}

async function member(options: Parameters<typeof start>[0] = {}): Promise<Member> {
  const made = start(options);
  await made.feed.ready();
  return made;
}

describe("every kind of write invalidates", () => {
  const WRITES: readonly (readonly [string, string])[] = [
    ["INSERT", "INSERT INTO users VALUES (4, 'u4')"],
    ["UPDATE", "UPDATE users SET name = 'x' WHERE id = 1"],
    ["DELETE", "DELETE FROM users WHERE id = 1"],
    ["REPLACE", "REPLACE INTO users VALUES (1, 'x')"],
    ["a transaction", "BEGIN; UPDATE users SET name = 'x'; COMMIT"],
    ["TRUNCATE", "TRUNCATE users"],
    ["TRUNCATE with a setting", "SET STATEMENT lock_wait_timeout = 5 FOR TRUNCATE users"],
    ["ALTER", "ALTER TABLE users ADD COLUMN age int"],
    ["RENAME", "RENAME TABLE users TO others, others TO users"],
    [
      "a statement in the format of statements",
      "SET SESSION binlog_format = STATEMENT; UPDATE users SET name = 'x'",
    ],
    [
      "a distributed transaction",
      "XA START 'a'; UPDATE users SET name = 'x'; XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'",
    ],
    ["CREATE TABLE ... SELECT", "CREATE TABLE copies SELECT * FROM users"],
  ];

  test.each(WRITES)("%s", async (_, sql) => {
    const { keep, gone, has, feed } = await member();
    await keep("read", tableTag("users"));
    await keep("other", tableTag("elsewhere"));
    await outside.query(sql);
    await gone("read");
    expect(await has("other")).toBe(true);
    expect(feed.status()).toMatchObject({ role: "leader", alive: true });
  });

  test("a trigger, a procedure and a cascade, at any distance", async () => {
    await outside.query(`
      CREATE TABLE log (id int AUTO_INCREMENT PRIMARY KEY, text varchar(50));
      CREATE TRIGGER noted AFTER UPDATE ON users FOR EACH ROW INSERT INTO log (text) VALUES (NEW.name);
      CREATE PROCEDURE rename_all() UPDATE users SET name = 'p';
      CREATE TABLE orders (id int PRIMARY KEY, user int, FOREIGN KEY (user) REFERENCES users (id) ON DELETE CASCADE);
      CREATE TABLE parts (id int PRIMARY KEY, o int, FOREIGN KEY (o) REFERENCES orders (id) ON DELETE CASCADE);
      INSERT INTO orders VALUES (1, 1); INSERT INTO parts VALUES (1, 1)`);
    const { keep, gone } = await member({ tables: ["users", "log", "orders", "parts"], rows: true });
    await keep("log", tableTag("log"));
    await keep("users", tableTag("users"));
    await outside.query("CALL rename_all()");
    await gone("log");
    await gone("users");
    await keep("parts", tableTag("parts"));
    await keep("part", rowTag("parts", 1), rowsTag("parts"));
    await outside.query("DELETE FROM users WHERE id = 1");
    await gone("parts");
    await gone("part");
  });

  test("a cascade from a table to itself concerns rows that the log does not name", async () => {
    await outside.query(`
      CREATE TABLE nodes (id int PRIMARY KEY, above int, FOREIGN KEY (above) REFERENCES nodes (id) ON DELETE CASCADE);
      INSERT INTO nodes VALUES (1, NULL), (2, 1)`);
    const { keep, gone } = await member({ tables: "nodes", rows: true });
    await keep("below", rowTag("nodes", 2), rowsTag("nodes"));
    await outside.query("DELETE FROM nodes WHERE id = 1");
    await gone("below");
  });

  describe("a cascade, though the feed's user cannot see the rules of foreign keys", () => {
    const setUp = (grants: string) =>
      outside.query(`
        CREATE TABLE orders (id int PRIMARY KEY, user int, FOREIGN KEY (user) REFERENCES users (id) ON DELETE CASCADE);
        CREATE TABLE parts (id int PRIMARY KEY, o int, FOREIGN KEY (o) REFERENCES orders (id) ON DELETE CASCADE);
        INSERT INTO orders VALUES (1, 1); INSERT INTO parts VALUES (1, 1);
        CREATE OR REPLACE USER feed@'%'; GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO feed@'%'; ${grants}`);

    test.each([
      ["may only read the tables", () => `GRANT SELECT ON ${name}.* TO feed@'%'`],
      [
        "sees nothing of a table between",
        () => `GRANT SELECT ON ${name}.users TO feed@'%'; GRANT SELECT ON ${name}.parts TO feed@'%'`,
      ],
      ["sees definitions and no data", () => `GRANT REFERENCES ON ${name}.* TO feed@'%'`],
    ])("because it %s", async (_, grants) => {
      await setUp(grants());
      const connection = server.at(name, "feed") as object as Record<string, unknown>;
      const { keep, gone, has } = await member({ tables: ["users", "parts"], rows: true, connection });
      await keep("parts", tableTag("parts"));
      await keep("part", rowTag("parts", 1), rowsTag("parts"));
      await outside.query("INSERT INTO users VALUES (4, 'u4')");
      await outside.query("DELETE FROM users WHERE id = 1");
      await gone("parts");
      await gone("part");
      expect(await has("parts")).toBe(false);
    });
  });

  test("a distributed transaction concerns the rows that it has changed, once it is decided", async () => {
    const { keep, gone, has } = await member({ rows: true });
    await keep("user 1", rowTag("users", 1), rowsTag("users"));
    await keep("user 2", rowTag("users", 2), rowsTag("users"));
    await keep("user 3", rowTag("users", 3), rowsTag("users"));
    await outside.query(
      "XA START 'a', 'b', 7; UPDATE users SET name = 'x' WHERE id = 1; XA END 'a', 'b', 7; XA PREPARE 'a', 'b', 7",
    );
    const other = await outsider();
    await other.query("UPDATE users SET name = 'x' WHERE id = 3");
    await gone("user 3");
    expect(await has("user 1")).toBe(true);
    await outside.query("XA COMMIT 'a', 'b', 7");
    await gone("user 1");
    expect(await has("user 2")).toBe(true);
  });

  test("a rollback, a temporary table and another database invalidate nothing", async () => {
    await outside.query("CREATE TABLE marks (id int)");
    const { keep, has, gone } = await member({ tables: ["users", "marks"] });
    await keep("read", tableTag("users"));
    await outside.query("BEGIN; UPDATE users SET name = 'x'; ROLLBACK");
    await outside.query("CREATE TEMPORARY TABLE t (id int); INSERT INTO t VALUES (1)");
    const stranger = await outsider(await server.createDatabase());
    await stranger.query("CREATE TABLE users (id int); INSERT INTO users VALUES (1); DROP TABLE users");
    // It comes after all of them in the log.
    await keep("mark", tableTag("marks"));
    await outside.query("INSERT INTO marks VALUES (1)");
    await gone("mark");
    expect(await has("read")).toBe(true);
  });
});

test("rows are invalidated one by one", async () => {
  await outside.query(`
    CREATE TABLE things (t time(3), b bit(10), d decimal(20, 7), c char(40), v varchar(300), e enum('a', 'b'), s set('a', 'b'),
      f float, g double, y year, da date, dt datetime(6), ts timestamp(2) DEFAULT '2026-01-01', bl blob, j json, tiny tinyint unsigned,
      big bigint unsigned, small smallint, PRIMARY KEY (big, small));
    INSERT INTO things VALUES ('10:00:00.5', b'1010101010', 1234567890.1234567, 'char', REPEAT('ä', 200), 'b', 'a,b', 1.5, 2.5, 2026,
      '2026-01-02', '2026-01-02 03:04:05.678901', DEFAULT, REPEAT('x', 300), '{"a": 1}', 255, 18446744073709551615, -5),
      (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT, NULL, NULL, NULL, 7, 8)`);
  const { keep, has, gone } = await member({ tables: ["users", "things"], rows: true });
  const large = rowTag("things", [18446744073709551615n, -5]);
  await keep("user 1", rowTag("users", 1), rowsTag("users"));
  await keep("user 2", rowTag("users", 2), rowsTag("users"));
  await keep("large", large, rowsTag("things"));
  await keep("seven", rowTag("things", [7, 8]), rowsTag("things"));
  await outside.query("UPDATE users SET name = 'x' WHERE id = 1");
  await gone("user 1");
  await outside.query("UPDATE things SET c = 'other', v = NULL WHERE small = -5");
  await gone("large");
  expect([await has("user 2"), await has("seven")]).toEqual([true, true]);
  await outside.query("DELETE FROM things WHERE big = 7");
  await gone("seven");
  // A changed key concerns both rows.
  await keep("user 9", rowTag("users", 9), rowsTag("users"));
  await outside.query("UPDATE users SET id = 9 WHERE id = 2");
  await Promise.all([gone("user 2"), gone("user 9")]);
  // A changed table is decoded by its new layout.
  await keep("layout", tableTag("users"));
  await outside.query("ALTER TABLE users ADD COLUMN age int FIRST");
  await gone("layout");
  await keep("user 3", rowTag("users", 3), rowsTag("users"));
  await keep("user 1", rowTag("users", 1), rowsTag("users"));
  await outside.query("UPDATE users SET age = 1 WHERE id = 3");
  await gone("user 3");
  expect(await has("user 1")).toBe(true);
});

describe("the gate", () => {
  /**
   * A commit that is in the log, and stays invisible until nobody has acknowledged it for two seconds: what a read right
   * after the invalidation sees.
   */
  async function readAfterInvalidation(internals: MysqlInternals): Promise<string | undefined> {
    const { keep, gone } = await member({ internals });
    const reader = await outsider();
    await outside.query(`SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC;
      SET GLOBAL rpl_semi_sync_master_timeout = 2000; SET GLOBAL rpl_semi_sync_master_enabled = ON`);
    closing.push(() => outside.query("SET GLOBAL rpl_semi_sync_master_enabled = OFF"));
    await keep("read", tableTag("users"));
    const writing = outside.query("UPDATE users SET name = 'new' WHERE id = 1");
    await gone("read");
    const [rows] = await reader.query("SELECT name FROM users WHERE id = 1");
    await writing;
    return (rows as { readonly name: string }[])[0]?.name;
  }

  test("a read after the invalidation sees the commit", async () => {
    expect(await readAfterInvalidation({})).toBe("new");
  });

  test("without it, the old row would be read and cached", async () => {
    expect(await readAfterInvalidation({ isVisible: () => true })).toBe("u1");
  });
});

describe("faults", () => {
  test("a server that was restarted is followed again, and everything is dropped", async () => {
    const { keep, gone, feed } = await member();
    await keep("read", tableTag("users"));
    await server.restart();
    await gone("read");
    await feed.ready();
    expect(feed.status().gaps).toBe(2);
    const again = await outsider();
    await keep("read", tableTag("users"));
    await again.query("UPDATE users SET name = 'x'");
    await gone("read");
  });

  test("rotated and purged logs are followed", async () => {
    const { keep, gone, feed } = await member();
    for (let at = 0; at < 3; at++) {
      await keep("read", tableTag("users"));
      await outside.query("FLUSH BINARY LOGS");
      await outside.query("UPDATE users SET name = CONCAT(name, 'x')");
      await gone("read");
    }
    expect(feed.status().gaps).toBe(1);
  });

  test("one process leads, and another takes over when it closes", async () => {
    const first = await member();
    const second = await member();
    expect([first.feed.status().role, second.feed.status().role]).toEqual(["leader", "follower"]);
    await first.feed.close();
    await until(() => second.feed.status().role === "leader", { what: "the second leads" });
    await second.keep("read", tableTag("users"));
    await outside.query("UPDATE users SET name = 'x'");
    await second.gone("read");
  });

  test("a killed connection of the stream is a gap", async () => {
    const { keep, gone, feed } = await member();
    await keep("read", tableTag("users"));
    const [rows] = await outside.query("SHOW PROCESSLIST");
    // Those of feeds that have been closed stay until the server has something to send.
    for (const { Id, Command } of rows as { Id: number; Command: string }[])
      if (Command === "Binlog Dump") await outside.query(`KILL ${Id}`);
    await gone("read");
    await feed.ready();
    expect(feed.status()).toMatchObject({ role: "leader", gaps: 2 });
  });
});

describe("a server that cannot be used is refused with the reason", () => {
  test("a table that does not exist", async () => {
    await expect(start({ tables: "nothing" }).feed.ready()).rejects.toMatchObject({
      code: "FEATURE_DISABLED",
      message: "feed: the database has no table nothing",
    });
  });

  test("no database", async () => {
    const { database: _, ...address } = server.at(name);
    await expect(
      start({ connection: address as object as Record<string, unknown> }).feed.ready(),
    ).rejects.toThrow("the connection names no database");
  });

  test("statements instead of rows", async () => {
    await outside.query("SET GLOBAL binlog_format = MIXED");
    closing.push(() => outside.query("SET GLOBAL binlog_format = ROW"));
    await expect(start().feed.ready()).rejects.toThrow("binlog_format must be ROW, it is MIXED");
  });

  test("bad options", () => {
    expect(() => start({ connection: "" })).toThrow("connection must be a connection string");
    expect(() => start({ tables: [] })).toThrow("tables must be");
  });
});
