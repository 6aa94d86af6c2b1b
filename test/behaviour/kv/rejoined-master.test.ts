// A master that was a replica for a while has the same run id as before, and may have lost acknowledged writes.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { XCache } from "../../../src/xcache.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

let server: RedisServer;
let replica: RedisServer;
const caches: XCache[] = [];

beforeEach(async () => {
  const args = ["--repl-diskless-sync-delay", "0"];
  server = await startRedis({ args });
  replica = await startRedis({ args: [...args, "--replicaof", `127.0.0.1 ${server.port}`] });
  await untilLinked(replica);
});
afterEach(async () => {
  for (const cache of caches.splice(0)) await cache.disconnect();
  await Promise.all([server.stop(), replica.stop()]);
});

function open(config: CacheConfig = {}): XCache {
  const cache = new XCache({ kvUrl: server.url, circuitBreaker: { resetTimeout: 0.1 }, ...config });
  cache.on("error", () => {});
  caches.push(cache);
  return cache;
}

async function fact(of: RedisServer, field: string): Promise<string | undefined> {
  return new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(await of.cli("INFO"))?.[1];
}

const untilLinked = (of: RedisServer): Promise<unknown> =>
  until(async () => (await fact(of, "master_link_status")) === "up", { what: "the replica is in step" });

/** The replica has caught up and is cut off from now on. */
async function cutOff(): Promise<void> {
  const written = await fact(server, "master_repl_offset");
  await until(async () => Number(await fact(replica, "slave_repl_offset")) >= Number(written), {
    what: "the replica has everything",
  });
  await replica.cli("replicaof", "no", "one");
}

/** The master copies the replica's data, and becomes the master again. */
async function rejoin(): Promise<void> {
  await server.cli("replicaof", "127.0.0.1", String(replica.port));
  await untilLinked(server);
  await server.cli("replicaof", "no", "one");
}

/** Reads through the cache, then returns whether the deletion has been repeated on the server. */
async function failedOver(cache: XCache): Promise<boolean> {
  await cache.get("deleted").catch(() => {});
  return !(await server.cli("KEYS", "*:deleted")).includes("deleted");
}

const answers = (cache: XCache): Promise<unknown> =>
  until(async () => (await cache.get("nothing")) === undefined, { what: "the server answers" });

describe("a master that has taken over the data of a replica that lagged behind", () => {
  it.each([{ nearCache: false }, { nearCache: true }])(
    "receives a process's changes again, even if the process was idle meanwhile (near_cache: $nearCache)",
    async ({ nearCache }) => {
      const cache = open({ nearCache });
      await cache.set("deleted", "old");
      await cache.set("tagged", "old", { tags: ["t"] });
      await cache.set("kept", "kept");
      await cutOff();
      await cache.delete("deleted");
      await cache.invalidateTags("t");
      const run = await fact(server, "run_id");
      await rejoin();
      expect(await fact(server, "run_id")).toBe(run);
      await answers(cache);
      await until(async () => (await cache.get("deleted")) !== "old", {
        what: "it is repeated",
        timeoutMs: 1_000,
      });
      expect(await cache.get("tagged")).not.toBe("old");
      expect(await open().get("deleted")).toBeUndefined();
    },
  );

  it.each([{ nearCache: false }, { nearCache: true }])(
    "never serves the old value to the process that changed it (near_cache: $nearCache)",
    async ({ nearCache }) => {
      const cache = open({ nearCache, operationTimeout: 5 });
      await cache.set("deleted", "old");
      await cutOff();
      await cache.delete("deleted");
      const seen = new Set<unknown>();
      let isOver = false;
      const read = async (): Promise<void> => {
        while (!isOver) seen.add(await cache.get("deleted").catch(() => undefined));
      };
      const reading = Promise.all(Array.from({ length: 20 }, read));
      await rejoin();
      await until(() => failedOver(cache), { what: "the deletion is repeated" });
      isOver = true;
      await reading;
      expect([...seen]).toEqual([undefined]);
    },
  );

  it("receives a process's changes again, even if the server pushes nothing", async () => {
    await server.cli("ACL", "SETUSER", "app", "on", ">secret-word", "~*", "&*", "+@all", "-client|tracking");
    const cache = open({ kvUrl: server.url.replace("redis://", "redis://app:secret-word@") });
    await cache.set("deleted", "old");
    await cutOff();
    await cache.delete("deleted");
    await rejoin();
    await until(() => failedOver(cache), { what: "the deletion is repeated" });
  });

  it("does not bring back old values changed by a process that has ended", async () => {
    const issuer = open();
    await issuer.set("k", "old");
    await cutOff();
    await issuer.delete("k");
    await issuer.disconnect();
    await rejoin();
    expect(await open().get("k")).toBeUndefined();
  });
});

describe("nothing is lost, and nothing is cleared,", () => {
  it("when a connection is lost", async () => {
    const cache = open();
    await cache.set("k", "kept");
    await server.cli("client", "kill", "type", "normal", "skipme", "yes");
    expect(await cache.get("k")).toBe("kept");
    expect(await open().get("k")).toBe("kept");
  });

  it("when a master is made a replica and promoted again before it could sync", async () => {
    const cache = open();
    await cache.set("k", "kept");
    await server.cli("replicaof", "127.0.0.1", "1");
    await server.cli("replicaof", "no", "one");
    await server.cli("client", "kill", "type", "normal", "skipme", "yes");
    await answers(cache);
    expect(await cache.get("k")).toBe("kept");
    expect(await open().get("k")).toBe("kept");
  });

  it("when a master gets its first replica, which renames its history", async () => {
    const alone = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
    try {
      const cache = open({ kvUrl: alone.url });
      await cache.set("k", "kept");
      const before = await fact(alone, "master_replid");
      await replica.cli("replicaof", "127.0.0.1", String(alone.port));
      await until(async () => (await fact(alone, "connected_slaves")) === "1", {
        what: "the replica is there",
      });
      expect(await fact(alone, "master_replid")).not.toBe(before);
      await alone.cli("client", "kill", "type", "normal", "skipme", "yes");
      expect(await cache.get("k")).toBe("kept");
      expect(await open({ kvUrl: alone.url }).get("k")).toBe("kept");
    } finally {
      await alone.stop();
    }
  });
});
