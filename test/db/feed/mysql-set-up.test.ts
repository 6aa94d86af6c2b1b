// What a database of MariaDB needs for a feed: the checks, and the statements that set it up.
import mysql, { type Connection } from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { checkMysqlSetUp, mysqlSetUpSql } from "../../../src/db/feed/mysql-set-up.ts";
import { mysqlFeed } from "../../../src/db/feed.ts";
import { XCache } from "../../../src/xcache.ts";
import { type MariadbServer, startMariadb } from "../../support/mariadb.ts";

const LOG = ["--log-bin=log", "--server-id=1"];

let server: MariadbServer;
let admin: Connection;
let name: string;

async function connected(to: MariadbServer, database: string): Promise<Connection> {
  return mysql.createConnection({ ...to.at(database), multipleStatements: true });
}

beforeAll(async () => {
  server = await startMariadb([...LOG, "--binlog-format=ROW", "--expire-logs-days=7"]);
});
afterAll(() => server?.stop());
beforeEach(async () => {
  name = await server.createDatabase();
  admin = await connected(server, name);
  await admin.query("CREATE TABLE users (id int PRIMARY KEY, name varchar(50))");
  return () => admin.end();
});

async function states(
  tables: readonly string[],
  connection: object = server.at(name),
): Promise<Record<string, string>> {
  const findings = await checkMysqlSetUp({ ...connection }, { tables });
  return Object.fromEntries(
    findings.map((each) => [each.name, each.state === "ok" ? "ok" : `${each.state}: ${each.detail}`]),
  );
}

test("a database that is ready has no problems", async () => {
  expect(await states(["users"])).toEqual({
    server: "ok",
    log_bin: "ok",
    binlog_format: "ok",
    binlog_row_image: "ok",
    binlog_filters: "ok",
    tables: "ok",
    primary_keys: "ok",
    cascades: "ok",
    privileges: "ok",
    retention: "ok",
    connections: "ok",
  });
});

test("each thing that is missing in the database is named", async () => {
  await admin.query(`
    CREATE TABLE keyless (id int);
    CREATE TABLE orders (id int PRIMARY KEY, user int, FOREIGN KEY (user) REFERENCES users (id) ON DELETE CASCADE);
    CREATE TABLE parts (id int PRIMARY KEY, o int, FOREIGN KEY (o) REFERENCES orders (id) ON DELETE SET NULL);
    CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'geheim';
    GRANT SELECT ON ${name}.users TO reader@'%';
    GRANT SELECT ON ${name}.parts TO reader@'%';
    GRANT SELECT ON ${name}.keyless TO reader@'%'`);
  const findings = await checkMysqlSetUp(
    { ...server.at(name, "reader"), password: "geheim" },
    { tables: ["users", "parts", "orders"] },
  );
  expect(JSON.stringify(findings)).not.toMatch(/geheim|PASSWORD|\*[0-9A-F]{40}/);
  const byName = new Map(findings.map((each) => [each.name, each]));
  expect(byName.get("privileges")).toMatchObject({
    state: "problem",
    detail: "user reader@% lacks REPLICATION SLAVE and BINLOG MONITOR",
  });
  expect(byName.get("tables")).toMatchObject({
    state: "problem",
    detail: `${name} has no table orders, or the user has no privilege on it`,
    advice: expect.stringContaining(`GRANT REFERENCES ON ${name}.*`),
  });
  expect(byName.get("binlog_filters")).toMatchObject({
    state: "problem",
    detail: expect.stringMatching(/^unknown: .*BINLOG MONITOR/),
  });
  expect(byName.get("cascades")).toMatchObject({
    state: "warning",
    detail:
      "not in the log, so followed by the feed: orders to parts; the user cannot see their rules, so every foreign key counts as one " +
      "that cascades; the user cannot see orders, so every change drops what is below",
  });
  expect(byName.get("primary_keys")?.state).toBe("ok");
  expect((await states([])).primary_keys).toBe("warning: none in keyless");
  const all = await checkMysqlSetUp({ ...server.at(name) }, { tables: ["parts"] });
  expect(all.find((each) => each.name === "cascades")).toEqual({
    name: "cascades",
    state: "ok",
    detail: "not in the log, so followed by the feed: orders to parts, users to orders",
    advice: null,
  });
});

test("each setting of the server that does not fit is named", async () => {
  const before =
    "SET GLOBAL binlog_format = ROW; SET GLOBAL binlog_row_image = FULL; SET GLOBAL read_only = OFF;";
  await admin.query(`
    SET GLOBAL binlog_format = MIXED; SET GLOBAL binlog_row_image = MINIMAL; SET GLOBAL read_only = ON;
    SET GLOBAL expire_logs_days = 0; SET GLOBAL max_connections = 10`);
  const crowd = await Promise.all(Array.from({ length: 8 }, () => connected(server, name)));
  try {
    expect(await states(["users"])).toMatchObject({
      server: expect.stringMatching(/^warning: MariaDB .*, read-only$/),
      binlog_format: "problem: MIXED",
      binlog_row_image: "warning: MINIMAL",
      retention: "warning: logs are kept for ever",
      connections: "problem: 1 of 10 are free",
    });
  } finally {
    await Promise.all(crowd.map((each) => each.end()));
    await admin.query(`${before} SET GLOBAL expire_logs_days = 7; SET GLOBAL max_connections = 151`);
  }
  const { database: _, ...nowhere } = server.at(name);
  expect((await states([], nowhere)).database).toBe("problem: none is named");
});

test("a server without a log, and one whose log leaves the database out", async () => {
  const silent = await startMariadb();
  try {
    expect(await states([], silent.at("mysql"))).toMatchObject({ server: "ok", log_bin: "problem: OFF" });
  } finally {
    await silent.stop();
  }
  const filtered = await startMariadb([...LOG, "--binlog-ignore-db=mysql"]);
  try {
    expect(await states([], filtered.at("mysql"))).toMatchObject({
      binlog_filters: "problem: the log leaves out mysql",
    });
  } finally {
    await filtered.stop();
  }
});

test("the printed statements give a user all that a feed needs, and no data", async () => {
  await admin.query(mysqlSetUpSql(name).join("\n"));
  const user = { ...server.at(name, "xcache_feed"), password: "..." };
  expect(Object.entries(await states(["users"], user)).filter(([, state]) => state !== "ok")).toEqual([]);
  const cache = new XCache({ kvUrl: "memory://" });
  const feed = mysqlFeed({ connection: user, cache, tables: "users" });
  await feed.ready();
  expect(feed.status().role).toBe("leader");
  await feed.close();
  await cache.disconnect();
  const reader = await mysql.createConnection(user);
  await expect(reader.query("SELECT * FROM users")).rejects.toThrow(/denied/);
  await reader.end();
});

test("a name that needs quotes is quoted", () => {
  expect(mysqlSetUpSql("my-`shop").join("\n")).toContain("GRANT REFERENCES ON `my-``shop`.* TO");
});
