// Row tags of MariaDB end to end: sessions of mysql2 whose reads by primary key only a change of their own row invalidates, as the
// binary log reports it.
import mysql, { type Connection, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startMysqlFeed } from "../../../src/db/feed/start.ts";
import { XCache } from "../../../src/xcache.ts";
import { type MariadbServer, startMariadb } from "../../support/mariadb.ts";
import { until } from "../../support/until.ts";
import { cachedDependency } from "../database.ts";

let server: MariadbServer;
let name: string;
let outside: Connection;
let closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startMariadb(["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]);
});
afterAll(() => server?.stop());
beforeEach(async () => {
  name = await server.createDatabase();
  outside = await mysql.createConnection({ ...server.at(name), multipleStatements: true });
  closing.push(() => outside.end());
  await outside.query(`
    CREATE TABLE users (id int PRIMARY KEY, name varchar(50) NOT NULL);
    CREATE TABLE marks (id int PRIMARY KEY, name varchar(50) NOT NULL);
    INSERT INTO users VALUES (1, 'u1'), (2, 'u2'), (3, 'u3');
    INSERT INTO marks VALUES (1, 'start')`);
});
afterEach(async () => {
  const ends = closing.reverse();
  closing = [];
  await Promise.allSettled(ends.map((end) => end()));
});

/** An application: a pool whose reads are cached, and the feed of its database. */
interface App {
  readonly db: Pool;
  /** The name in the first row of a read, and whether the database was asked for it. */
  read(text: string, values: readonly unknown[]): Promise<{ name: string | undefined; isCached: boolean }>;
  /** Resolves once everything that was committed before has been invalidated. */
  caughtUp(): Promise<void>;
}

const MARK = "SELECT name FROM marks WHERE id = ?";
const BY_ID = "SELECT name FROM users WHERE id = ?";

async function started(tables: readonly string[] = ["users"]): Promise<App> {
  const cache = new XCache({ kvUrl: "memory://" });
  const covered = [...tables, "marks"];
  const connection = server.at(name) as object as Record<string, unknown>;
  const feed = startMysqlFeed({ connection, cache, tables: covered, rows: true, silentFor: 30 }, {});
  const pool = mysql.createPool({ ...server.at(name), connectionLimit: 2 });
  closing.push(async () => {
    await feed.close();
    await Promise.all([pool.end(), cache.disconnect()]);
  });
  let asked = 0;
  pool.on("acquire", () => asked++);
  const db = cachedDependency(() => pool, { cache, tableName: covered, ttl: 3_600, feed })();
  const read: App["read"] = async (text, values) => {
    const before = asked;
    const [rows] = await db.execute<RowDataPacket[]>(text, values as string[]);
    return { name: rows[0]?.name as string | undefined, isCached: asked === before };
  };
  await feed.ready();
  let marks = 0;
  const caughtUp = async () => {
    const mark = `mark ${++marks}`;
    // Cached, so that only the feed can replace it. It comes after all else in the log.
    await cached({ read }, MARK, [1]);
    await outside.query("UPDATE marks SET name = ? WHERE id = 1", [mark]);
    await until(async () => (await read(MARK, [1])).name === mark, { what: "the feed has caught up" });
  };
  return { db, read, caughtUp };
}

/** Reads until the answer is cached. */
async function cached(
  app: Pick<App, "read">,
  text: string,
  values: readonly unknown[],
): Promise<string | undefined> {
  await until(async () => (await app.read(text, values)).isCached, { what: `${text} is cached` });
  return (await app.read(text, values)).name;
}

test("only the row that another program has changed is read again", async () => {
  const app = await started();
  for (const id of [1, 2, 3]) expect(await cached(app, BY_ID, [id])).toBe(`u${id}`);
  await outside.query("UPDATE users SET name = 'new' WHERE id = 2");
  await app.caughtUp();
  expect(await app.read(BY_ID, [2])).toEqual({ name: "new", isCached: false });
  expect(await app.read(BY_ID, [2])).toEqual({ name: "new", isCached: true });
  expect(await app.read(BY_ID, [1])).toEqual({ name: "u1", isCached: true });
  expect(await app.read(BY_ID, [3])).toEqual({ name: "u3", isCached: true });
});

test("reads of more than a row depend on the whole table", async () => {
  const app = await started();
  const last = "SELECT name FROM users WHERE id > ? ORDER BY id DESC";
  expect(await cached(app, last, [0])).toBe("u3");
  expect(await cached(app, BY_ID, [1])).toBe("u1");
  await outside.query("INSERT INTO users VALUES (4, 'u4')");
  await app.caughtUp();
  expect(await app.read(last, [0])).toEqual({ name: "u4", isCached: false });
  expect(await app.read(BY_ID, [1])).toEqual({ name: "u1", isCached: true });
});

test("a row that does not exist is not stored, and a key that changes concerns both rows", async () => {
  const app = await started();
  expect(await cached(app, BY_ID, [1])).toBe("u1");
  expect(await app.read(BY_ID, [9])).toEqual({ name: undefined, isCached: false });
  expect(await app.read(BY_ID, [9])).toEqual({ name: undefined, isCached: false });
  await outside.query("UPDATE users SET id = 9 WHERE id = 1");
  await app.caughtUp();
  expect(await app.read(BY_ID, [1])).toEqual({ name: undefined, isCached: false });
  expect((await app.read(BY_ID, [9])).name).toBe("u1");
});

test("a commit through the session, and a truncation, concern every row", async () => {
  const app = await started();
  expect(await cached(app, BY_ID, [2])).toBe("u2");
  await app.db.query("UPDATE users SET name = 'mine' WHERE id IN (1, 2)");
  expect((await app.read(BY_ID, [2])).name).toBe("mine");
  expect(await cached(app, BY_ID, [2])).toBe("mine");
  await outside.query("TRUNCATE users");
  await app.caughtUp();
  expect((await app.read(BY_ID, [2])).name).toBeUndefined();
});

describe("a change of the row is seen, however its key is written:", () => {
  test.each<[string, unknown]>([
    [BY_ID, 1],
    [BY_ID, "1"],
    [BY_ID, "01"],
    [BY_ID, " 1"],
    [BY_ID, "1.0"],
    [BY_ID, "1e0"],
    [BY_ID, "1st"],
    [BY_ID, 1n],
    [BY_ID, true],
    ["SELECT u.name FROM users AS u WHERE u.id = ? LIMIT 1", 1],
    ["SELECT name FROM users WHERE ID = ? AND name IS NOT NULL", 1],
    ["SELECT name FROM `users` WHERE ? = `id`", 1],
    ["SELECT name FROM users WHERE name = name AND id = ?", 1],
    ["SELECT name FROM users WHERE id + 0 = ?", 1],
    ["SELECT name FROM users WHERE id = - ?", -1],
    ["SELECT name FROM users WHERE id = ? OR id = 1", 7],
    ["SELECT name FROM users WHERE id = ? XOR id = 7", 1],
    ["SELECT name FROM users WHERE id = ? || id = 1", 7],
    ["SELECT name FROM users WHERE NOT id = ? LIMIT 1", 2],
    ["SELECT name FROM users WHERE id = ? + 1", 0],
    ["SELECT (SELECT name FROM users WHERE id = 1) AS name FROM users WHERE id = ?", 2],
  ])("%s of %o", async (text, value) => {
    const app = await started();
    const first = await app.read(text, [value]);
    expect(first.name).toBe("u1");
    // Cached or not.
    for (let round = 0; round < 3; round++) expect((await app.read(text, [value])).name).toBe("u1");
    await outside.query("UPDATE users SET name = 'new' WHERE id = 1");
    await app.caughtUp();
    expect((await app.read(text, [value])).name).toBe("new");
  });

  test("an integer that a double cannot hold is not taken for its neighbour", async () => {
    await outside.query(`
      CREATE TABLE large (id bigint PRIMARY KEY, name varchar(50) NOT NULL);
      INSERT INTO large VALUES (9007199254740992, 'even'), (9007199254740993, 'odd')`);
    const app = await started(["large"]);
    const text = "SELECT name FROM large WHERE id = ?";
    for (const value of ["9007199254740993", 9007199254740993n, 9007199254740992]) {
      const { name: found } = await app.read(text, [value]);
      await app.read(text, [value]);
      await outside.query("UPDATE large SET name = CONCAT(name, '!')");
      await app.caughtUp();
      expect((await app.read(text, [value])).name).toBe(`${found}!`);
    }
  });

  test("of two columns, in any order", async () => {
    await outside.query(`
      CREATE TABLE parts (a int, b int, name varchar(50) NOT NULL, PRIMARY KEY (a, b));
      INSERT INTO parts VALUES (1, 2, 'p12'), (2, 1, 'p21')`);
    const app = await started(["parts"]);
    const text = "SELECT name FROM parts WHERE b = ? AND a = ?";
    expect(await cached(app, text, [2, 1])).toBe("p12");
    expect(await cached(app, text, [1, 2])).toBe("p21");
    await outside.query("UPDATE parts SET name = 'new' WHERE a = 1");
    await app.caughtUp();
    expect(await app.read(text, [2, 1])).toEqual({ name: "new", isCached: false });
    expect(await app.read(text, [1, 2])).toEqual({ name: "p21", isCached: true });
  });

  test("of text, which compares without case, is invalidated by table", async () => {
    await outside.query(`
      CREATE TABLE words (id varchar(20) PRIMARY KEY, name varchar(50) NOT NULL);
      INSERT INTO words VALUES ('Key', 'w1'), ('other', 'w2')`);
    const app = await started(["words"]);
    const text = "SELECT name FROM words WHERE id = ?";
    for (const key of ["Key", "KEY", "key "]) expect(await cached(app, text, [key])).toBe("w1");
    await outside.query("UPDATE words SET name = 'new' WHERE id = 'key'");
    await app.caughtUp();
    for (const key of ["Key", "KEY", "key "]) expect((await app.read(text, [key])).name).toBe("new");
  });
});
