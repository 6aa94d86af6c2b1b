// What a feed of MariaDB survives: a frozen server and a cut network, with writes that only the feed can tell of.
import mysql, { type Connection, type Pool, type RowDataPacket } from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type MysqlInternals, startMysqlFeed } from "../../../src/db/feed/start.ts";
import type { Feed } from "../../../src/db/feed.ts";
import { XCache } from "../../../src/xcache.ts";
import { type MariadbServer, startMariadb } from "../../support/mariadb.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";
import { cachedDependency } from "../database.ts";

let server: MariadbServer;
let redis: RedisServer;
let name: string;
let outside: Connection;
let closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  [server, redis] = await Promise.all([
    startMariadb(["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]),
    startRedis(),
  ]);
});
afterAll(() => Promise.all([server?.stop(), redis?.stop()]));
beforeEach(async () => {
  name = await server.createDatabase();
  outside = await mysql.createConnection(server.at(name));
  closing.push(() => outside.end());
  await outside.query("CREATE TABLE users (id int PRIMARY KEY, name varchar(50) NOT NULL)");
  await outside.query("INSERT INTO users VALUES (1, 'u1')");
});
afterEach(async () => {
  const ends = closing.reverse();
  closing = [];
  await Promise.allSettled(ends.map((end) => end()));
});

/** An application: a session whose reads are cached, and a feed that reaches the database by `port`. */
interface App {
  readonly feed: Feed;
  /** How often the database was asked. */
  readonly asked: () => number;
  name(): Promise<string | undefined>;
  isCached(): Promise<boolean>;
}

async function started(internals: MysqlInternals, port = server.port): Promise<App> {
  const cache = new XCache({ kvUrl: redis.url, keyPrefix: name });
  const connection = { ...server.at(name), port };
  const feed = startMysqlFeed({ connection, cache, tables: "users", silentFor: 1 }, internals);
  const pool: Pool = mysql.createPool({ ...server.at(name), connectionLimit: 2 });
  closing.push(async () => {
    await feed.close();
    await Promise.all([pool.end(), cache.disconnect()]);
  });
  const db = cachedDependency(() => pool, { cache, tableName: "users", ttl: 3_600, feed })();
  let asked = 0;
  pool.on("acquire", () => asked++);
  const ask = async (): Promise<string | undefined> => {
    const [rows] = await db.query<RowDataPacket[]>("SELECT name FROM users WHERE id = ?", [1]);
    return rows[0]?.name as string | undefined;
  };
  const isCached = async (): Promise<boolean> => {
    const before = asked;
    await ask();
    return asked === before;
  };
  await feed.ready();
  await until(isCached, { what: "reads are cached" });
  return { feed, asked: () => asked, name: ask, isCached };
}

const rename = (to: string) => outside.query("UPDATE users SET name = ? WHERE id = 1", [to]);

const isSilent = ({ feed }: App) => until(() => !feed.isAlive(), { what: "the feed is silent" });

/** It serves from the cache again, and what it serves is new. */
async function serves(app: App, wanted: string): Promise<void> {
  await until(() => app.feed.isAlive(), { what: "the feed is alive" });
  await until(async () => (await app.name()) === wanted, { what: `the name becomes ${wanted}` });
  await until(() => app.isCached(), { what: "reads are cached again" });
  expect(await app.name()).toBe(wanted);
}

/** Freezes the server until `work` is done. */
async function whileFrozen(work: () => Promise<void>): Promise<void> {
  server.freeze();
  try {
    await work();
  } finally {
    server.thaw();
  }
}

test("the server is frozen for a while: reads wait for it, and the stream goes on", async () => {
  const app = await started({});
  let writing: Promise<unknown> | undefined;
  let reading: Promise<string | undefined> | undefined;
  await whileFrozen(async () => {
    // It is carried out when the server runs again.
    writing = rename("Ada");
    await isSilent(app);
    const before = app.asked();
    reading = app.name();
    await until(() => app.asked() > before, { what: "the database is asked, not the cache" });
  });
  expect(["u1", "Ada"]).toContain(await reading);
  await writing;
  await serves(app, "Ada");
  expect(app.feed.status()).toMatchObject({ role: "leader", gaps: 1 });
});

test("the server is frozen until the feed gives its connections up: then everything is dropped", async () => {
  const app = await started({ timeoutMs: 1_500 });
  let writing: Promise<unknown> | undefined;
  await whileFrozen(async () => {
    writing = rename("Ada");
    await until(() => app.feed.status().role === "down", { what: "the connection is given up" });
    expect(app.feed.isAlive()).toBe(false);
  });
  await writing;
  await serves(app, "Ada");
  expect(app.feed.status().gaps).toBe(2);
});

test("the network is cut both ways", async () => {
  const relay = await Relay.start(server.port);
  closing.push(() => relay.stop());
  const app = await started({ timeoutMs: 1_500 }, relay.port);
  relay.silence();
  await rename("Ada");
  await isSilent(app);
  expect(await app.name()).toBe("Ada");
  expect(await app.isCached()).toBe(false);
  await until(() => app.feed.status().role === "down", { what: "the connection is given up" });
  await rename("Bob");
  expect(await app.name()).toBe("Bob");
  relay.reset();
  relay.restore();
  await serves(app, "Bob");
  expect(app.feed.status().gaps).toBeGreaterThan(1);
});

test("the connections are reset", async () => {
  const relay = await Relay.start(server.port);
  closing.push(() => relay.stop());
  const app = await started({}, relay.port);
  relay.reset();
  await rename("Ada");
  await until(() => app.feed.status().gaps === 2, { what: "everything was dropped" });
  await serves(app, "Ada");
});
