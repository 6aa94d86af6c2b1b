// What a feed survives: each fault on real servers, with a write that only the feed can tell of.
import pg from "pg";
import { expect, test } from "vitest";
import { tableTag } from "../../../src/index.ts";
import { OwnProcess } from "../../support/own-process.ts";
import { startPostgres } from "../../support/postgres.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";
import { becomes, feedStage, LOGICAL, type Member } from "./feed-stage.ts";

const stage = feedStage();

const rename = (name: string, id = 1) =>
  stage.outside.query("UPDATE users SET name = $1 WHERE id = $2", [name, id]);

const isAlive = (app: Member, alive: boolean) =>
  until(() => app.feed.isAlive() === alive, { what: alive ? "the feed is alive" : "the feed is silent" });

/** It serves from the cache again, and what it serves is new. */
async function serves(app: Member, name: string): Promise<void> {
  await isAlive(app, true);
  await becomes(app, name);
  await until(() => app.isCached(), { what: "reads are cached" });
  expect(await app.name()).toBe(name);
}

test("the database is restarted", async () => {
  const app = await stage.member({ silentFor: 2 });
  await stage.server.restart("SIGINT");
  const again = await stage.outsider();
  await again.query("UPDATE users SET name = 'Ada' WHERE id = 1");
  await until(() => app.feed.status().gaps === 2, { what: "everything was dropped" });
  await serves(app, "Ada");
});

test("the database fails over to a server that has neither slot nor lock", async () => {
  const promoted = await startPostgres(LOGICAL);
  stage.atEnd(() => promoted.stop());
  const admin = new pg.Client(promoted.at("postgres"));
  await admin.connect();
  await admin.query(`CREATE DATABASE ${stage.name}`);
  await admin.end();
  const writer = new pg.Client(promoted.at(stage.name));
  await writer.connect();
  stage.atEnd(() => writer.end());
  await writer.query(
    "CREATE TABLE users (id int PRIMARY KEY, name text); INSERT INTO users VALUES (1, 'u1')",
  );
  await writer.query("CREATE PUBLICATION xcache FOR TABLE users");
  // Every new connection goes to the primary of the moment.
  let port = stage.server.port;
  const primary = Object.defineProperty({ ...stage.server.at(stage.name) }, "port", {
    get: () => port,
    enumerable: true,
  });
  const { cache, feed } = await stage.member({ silentFor: 2, primary, slot: { durable: "kept" } });
  const name = () =>
    cache.getOrSet("name", async () => (await writer.query("SELECT name FROM users")).rows[0].name, {
      tags: [tableTag("users")],
    });
  expect(await name()).toBe("u1");
  port = promoted.port;
  await writer.query("UPDATE users SET name = 'Ada'");
  await stage.outside.query(
    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'kept'",
  );
  await until(() => feed.status().gaps === 2, { what: "everything was dropped" });
  await until(async () => (await name()) === "Ada", { what: "the missed change is seen" });
  await writer.query("UPDATE users SET name = 'Bob'");
  await until(async () => (await name()) === "Bob", { what: "changes of the new primary are seen" });
});

test("the stream is paused", async () => {
  const app = await stage.member({ silentFor: 1 });
  const { rows } = await stage.outside.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_replication WHERE application_name = 'xcache feed'",
  );
  const pid = rows[0]!.pid;
  process.kill(pid, "SIGSTOP");
  try {
    await rename("Ada");
    await isAlive(app, false);
    expect(await app.name()).toBe("Ada");
    expect(await app.isCached()).toBe(false);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await serves(app, "Ada");
  expect(app.feed.status().gaps).toBe(1);
});

test("an administrator drops the slot", async () => {
  const app = await stage.member({ silentFor: 2, slot: { durable: "dropped" } });
  await stage.outside.query(
    "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'dropped'",
  );
  await until(
    async () => {
      await stage.outside.query("SELECT pg_drop_replication_slot('dropped')");
      return true;
    },
    { what: "the slot is dropped" },
  );
  await rename("Ada");
  await serves(app, "Ada");
  expect(app.feed.status().gaps).toBe(2);
});

test("the slot has lost what it needs", async () => {
  const app = await stage.member({ slot: { durable: "lagging" } });
  await app.feed.close();
  await rename("Ada");
  await stage.outside.query("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'");
  await stage.outside.query("SELECT pg_reload_conf()");
  await until(
    async () => {
      await stage.outside.query("SELECT pg_switch_wal()");
      await stage.outside.query("CHECKPOINT");
      const { rows } = await stage.outside.query(
        "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'lagging'",
      );
      return rows[0]?.wal_status === "lost";
    },
    { what: "the slot is lost" },
  );
  await stage.outside.query("ALTER SYSTEM RESET max_slot_wal_keep_size");
  await stage.outside.query("SELECT pg_reload_conf()");
  const next = await stage.member({ slot: { durable: "lagging" } });
  await serves(next, "Ada");
  expect(next.feed.status().gaps).toBe(1);
});

test("a durable slot resumes after a break, and drops only what changed", async () => {
  const app = await stage.member({ slot: { durable: "resumed" } });
  await app.name(2);
  await app.feed.close();
  await rename("Ada");
  const next = await stage.member({ slot: { durable: "resumed" }, rows: false });
  await serves(next, "Ada");
  expect(next.feed.status()).toMatchObject({ gaps: 0, invalidations: 1 });
});

test("a durable slot of quiet tables retains nothing", async () => {
  const app = await stage.member({ slot: { durable: "quiet" }, silentFor: 1 });
  await stage.outside.query("CREATE TABLE other (id int)");
  await stage.outside.query("INSERT INTO other SELECT generate_series(1, 100)");
  const { rows } = await stage.outside.query<{ end: string }>('SELECT pg_current_wal_lsn()::text AS "end"');
  await until(
    async () =>
      (
        await stage.outside.query(
          "SELECT 1 FROM pg_replication_slots WHERE slot_name = 'quiet' AND confirmed_flush_lsn >= $1::pg_lsn",
          [rows[0]?.end],
        )
      ).rowCount === 1,
    { what: "the position is confirmed" },
  );
  expect(app.feed.status().invalidations).toBe(0);
});

test("the publication loses the table, and gets it back", async () => {
  const app = await stage.member({ silentFor: 1 });
  await stage.outside.query("ALTER PUBLICATION xcache DROP TABLE users");
  await rename("unseen");
  await isAlive(app, false);
  expect(await app.name()).toBe("unseen");
  expect(app.feed.status().error).toContain("does not tell of every change of users");
  await stage.outside.query("ALTER PUBLICATION xcache ADD TABLE users");
  await rename("Ada");
  await serves(app, "Ada");
});

test("the table is renamed, and another one takes its name", async () => {
  const app = await stage.member({ silentFor: 2 });
  await stage.outside.query(`
    BEGIN;
    ALTER TABLE users RENAME TO former;
    CREATE TABLE users (id int PRIMARY KEY, name text);
    INSERT INTO users VALUES (1, 'Ada');
    ALTER PUBLICATION xcache ADD TABLE users;
    COMMIT`);
  await becomes(app, "Ada");
  await rename("Bob");
  await serves(app, "Bob");
});

test("the network is cut both ways", async () => {
  const relay = await Relay.start(stage.server.port);
  stage.atEnd(() => relay.stop());
  const app = await stage.member({
    silentFor: 1,
    connection: { port: relay.port },
    internals: { timeoutMs: 1_500 },
  });
  relay.silence();
  await rename("Ada");
  await isAlive(app, false);
  expect(await app.name()).toBe("Ada");
  await until(() => app.feed.status().role === "down", { what: "the connection is given up" });
  relay.reset();
  relay.restore();
  await serves(app, "Ada");
  expect(app.feed.status().gaps).toBeGreaterThan(1);
});

test("the connection is reset", async () => {
  const relay = await Relay.start(stage.server.port);
  stage.atEnd(() => relay.stop());
  const app = await stage.member({ silentFor: 2, connection: { port: relay.port } });
  relay.reset();
  await rename("Ada");
  await until(() => app.feed.status().gaps === 2, { what: "everything was dropped" });
  await serves(app, "Ada");
});

test("the store is away from the leader while changes arrive: nobody serves what it could not invalidate", async () => {
  const relay = await Relay.start(stage.redis.port);
  stage.atEnd(() => relay.stop());
  const leader = await stage.member({ silentFor: 2, kvUrl: relay.url });
  const follower = await stage.member({ silentFor: 2 });
  await until(() => follower.isCached(), { what: "reads are cached" });
  relay.silence();
  await rename("Ada");
  await isAlive(follower, false);
  expect(await follower.name()).toBe("Ada");
  expect(leader.feed.status().invalidations).toBe(0);
  relay.reset();
  relay.restore();
  await serves(follower, "Ada");
});

test("a transaction stays open for long: others go through, and it follows", async () => {
  const app = await stage.member();
  const writer = await stage.outsider();
  await writer.query("BEGIN; UPDATE users SET name = 'late' WHERE id = 2");
  await app.name(2);
  await rename("Ada");
  await serves(app, "Ada");
  expect(await app.name(2)).toBe("u2");
  await writer.query("COMMIT");
  await becomes(app, "late", 2);
});

test("two applications share a publication, each with its own cache and leader", async () => {
  const one = await stage.member({ keyPrefix: "one" });
  const two = await stage.member({ keyPrefix: "two" });
  expect([one, two].map(({ feed }) => feed.status().role)).toEqual(["leader", "leader"]);
  await rename("Ada");
  for (const app of [one, two]) await serves(app, "Ada");
});

test("the cache is cleared: the processes agree on a leader again", async () => {
  const one = await stage.member({ silentFor: 2 });
  const two = await stage.member({ silentFor: 2 });
  await one.cache.clear();
  await rename("Ada");
  for (const app of [one, two]) await serves(app, "Ada");
  await until(
    () =>
      [one, two]
        .map(({ feed }) => feed.status().role)
        .sort()
        .join() === "follower,leader",
    { what: "one leads" },
  );
});

test("the leader closes: a follower takes over and drops everything", async () => {
  const one = await stage.member({ silentFor: 2 });
  const two = await stage.member({ silentFor: 2 });
  await one.feed.close();
  await rename("Ada");
  await until(() => two.feed.status().role === "leader", { what: "the follower leads" });
  await serves(two, "Ada");
  expect(two.feed.status()).toMatchObject({ gaps: 1, elections: 1 });
});

test("the leader is killed: a follower takes over", async () => {
  const leader = new OwnProcess(
    `import { XCache } from "./index.js";
     import { postgresFeed } from "./db/feed.js";
     const cache = new XCache(settings.cache);
     const feed = postgresFeed({ ...settings.feed, cache, tables: "users", silentFor: 2 });
     await feed.ready();
     say("ready", { role: feed.status().role });
     await nextMessage();`,
    {
      settings: {
        cache: { kvUrl: stage.redis.url, keyPrefix: "killed" },
        feed: { connection: stage.server.at(stage.name) },
      },
    },
  );
  stage.atEnd(() => leader[Symbol.asyncDispose]());
  expect(await leader.heard("ready")).toMatchObject({ role: "leader" });
  const app = await stage.member({ silentFor: 2, keyPrefix: "killed" });
  expect(app.feed.status().role).toBe("follower");
  await until(() => app.isCached(), { what: "reads are cached" });
  process.kill(leader.pid, "SIGKILL");
  await rename("Ada");
  await until(() => app.feed.status().role === "leader", { what: "the follower leads" });
  await serves(app, "Ada");
});
