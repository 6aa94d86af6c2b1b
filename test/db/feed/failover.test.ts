// A primary that dies and a standby that is promoted: what the feed then serves, on real servers.
import pg from "pg";
import { describe, expect, test } from "vitest";
import { type PostgresServer, startPostgres, startStandby } from "../../support/postgres.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";
import { becomes, feedStage, LOGICAL } from "./feed-stage.ts";

const stage = feedStage();

async function connected(server: PostgresServer): Promise<pg.Client> {
  const client = new pg.Client(server.at("postgres"));
  client.on("error", () => {});
  await client.connect();
  stage.atEnd(() => client.end());
  return client;
}

const nameOf = async (client: pg.Client): Promise<string | undefined> =>
  (await client.query<{ name: string }>("SELECT name FROM users WHERE id = 1")).rows[0]?.name;

/** A primary with a standby that has all of it, and the address that leads to whichever is in charge. */
async function pair() {
  const primary = await startPostgres(LOGICAL);
  stage.atEnd(() => primary.stop());
  const writer = await connected(primary);
  await writer.query("CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL)");
  await writer.query("INSERT INTO users VALUES (1, 'u1')");
  await writer.query("CREATE PUBLICATION xcache FOR TABLE users");
  const standby = await startStandby(primary, LOGICAL);
  stage.atEnd(() => standby.stop());
  const follower = await connected(standby);
  const relay = await Relay.start(primary.port);
  stage.atEnd(() => relay.stop());
  return { primary, writer, standby, follower, relay };
}

describe("the primary dies and its standby is promoted", () => {
  test.each([["temporary"], [{ durable: "kept" }]] as const)("with the slot %j", async (slot) => {
    const { primary, writer, standby, follower, relay } = await pair();
    const address = { ...primary.at("postgres"), port: relay.port };
    const app = await stage.member({ primary: address, silentFor: 1, slot });
    await writer.query("UPDATE users SET name = 'kept' WHERE id = 1");
    await becomes(app, "kept");
    await until(async () => (await nameOf(follower)) === "kept", { what: "the standby has it" });
    // From here on the standby gets nothing more: this commit is lost with its primary.
    await follower.query("ALTER SYSTEM SET primary_conninfo = ''");
    await follower.query("SELECT pg_reload_conf()");
    await until(async () => (await follower.query("SELECT 1 FROM pg_stat_wal_receiver")).rowCount === 0, {
      what: "the standby follows no more",
    });
    await writer.query("UPDATE users SET name = 'lost' WHERE id = 1");
    await becomes(app, "lost");
    await until(() => app.isCached(), { what: "reads are cached" });

    await primary.kill();
    await until(() => !app.feed.isAlive(), { what: "the feed is silent" });
    // The cache has an answer, and must not give it.
    await expect(app.name()).rejects.toThrow();

    await follower.query("SELECT pg_promote()");
    relay.leadTo(standby.port);
    await until(() => app.feed.isAlive(), { what: "the feed is alive" });
    expect(app.feed.status()).toMatchObject({ role: "leader", gaps: 2 });
    expect(await app.name()).toBe("kept");
    await follower.query("UPDATE users SET name = 'new' WHERE id = 1");
    await becomes(app, "new");
    await until(() => app.isCached(), { what: "reads are cached again" });
    expect(await app.name()).toBe("new");
    expect(app.feed.status().gaps).toBe(2);
  });
});
