// Invalidation by triggers that notify, for servers without logical replication.
import { expect, test } from "vitest";
import { setUpSql } from "../../../src/db/feed/set-up.ts";
import { startNotifyFeed } from "../../../src/db/feed/start.ts";
import { tableTag } from "../../../src/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { until } from "../../support/until.ts";
import { feedStage } from "./feed-stage.ts";

const stage = feedStage({ wal_level: "replica" });

async function notified(tables: readonly string[]): Promise<void> {
  await stage.outside.query(setUpSql({ publication: "xcache", tables, notify: true }).join("\n"));
}

function start(tables: readonly string[], silentFor = 2) {
  const cache = new XCache({ kvUrl: "memory://" });
  const feed = startNotifyFeed(
    { connection: { ...stage.server.at(stage.name) }, cache, tables, silentFor },
    {},
  );
  stage.atEnd(() => feed.close().then(() => cache.disconnect()));
  const read = (table: string) =>
    cache.getOrSet(
      table,
      async () =>
        (await stage.outside.query(`SELECT name FROM ${table} WHERE id = 1`)).rows[0]?.name as string,
      { tags: [tableTag(table)] },
    );
  return { cache, feed, read };
}

test("writes, cascades, COPY and truncations of any program invalidate", async () => {
  await stage.outside.query(
    "CREATE TABLE pets (id int PRIMARY KEY, name text, owner int REFERENCES users ON DELETE CASCADE)",
  );
  await stage.outside.query("INSERT INTO pets VALUES (1, 'Rex', 1), (2, 'Tom', 2)");
  await notified(["users", "pets"]);
  const { feed, read } = start(["users", "pets"]);
  await feed.ready();
  expect([await read("users"), await read("pets")]).toEqual(["u1", "Rex"]);
  await stage.outside.query("UPDATE users SET name = 'Ada' WHERE id = 1");
  await until(async () => (await read("users")) === "Ada", { what: "the update is seen" });
  await stage.outside.query("DELETE FROM users WHERE id = 1");
  await until(async () => (await read("pets")) === undefined, { what: "the cascade is seen" });
  await stage.outside.query("COPY users FROM PROGRAM 'printf ''1\\tBob\\n'''");
  await until(async () => (await read("users")) === "Bob", { what: "the copy is seen" });
  await stage.outside.query("TRUNCATE users CASCADE");
  await until(async () => (await read("users")) === undefined, { what: "the truncation is seen" });
  expect(feed.status()).toMatchObject({ role: "leader", gaps: 1, alive: true });
});

test("a write to a partition invalidates readers of the whole", async () => {
  await stage.outside.query(`
    CREATE TABLE events (id int PRIMARY KEY, name text) PARTITION BY RANGE (id);
    CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (100);
    INSERT INTO events VALUES (1, 'a')`);
  await notified(["events"]);
  await expect(start(["events"]).feed.ready()).rejects.toThrow(
    'no trigger "xcache" for every change of events',
  );
  await notified(["events_1"]);
  const { feed, read } = start(["events"]);
  await feed.ready();
  expect(await read("events")).toBe("a");
  await stage.outside.query("UPDATE events_1 SET name = 'b'");
  await until(async () => (await read("events")) === "b", { what: "the write is seen" });
});

test("after a lost connection everything is dropped", async () => {
  await notified(["users"]);
  const { feed, read } = start(["users"]);
  await feed.ready();
  expect(await read("users")).toBe("u1");
  await stage.outside.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'xcache feed'",
  );
  await stage.outside.query("UPDATE users SET name = 'Ada' WHERE id = 1");
  await until(async () => (await read("users")) === "Ada", { what: "the write is seen" });
  await until(() => feed.status().gaps === 2 && feed.isAlive(), { what: "the feed is back" });
});
