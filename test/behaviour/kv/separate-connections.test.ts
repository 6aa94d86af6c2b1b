// Scans, and swaps without scripts, have connections of their own, which must lead to the server in use, whatever happens.
import "../../../src/backends/kv/client.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { bulk, FakeServer, sentinelFor } from "../../support/kv/fake-server.ts";
import { failure } from "../../support/opened.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

/** A step of the cursor examines about a thousand. */
const ENTRIES = 5_000;

let server: RedisServer;
let other: RedisServer;
let caches: XCache[] = [];

beforeEach(async () => {
  const args = ["--repl-diskless-sync-delay", "0"];
  [server, other] = await Promise.all([startRedis({ args }), startRedis({ args })]);
});
afterEach(async () => {
  for (const cache of caches) await cache.disconnect();
  caches = [];
  await Promise.all([server.stop(), other.stop()]);
});

function open(config: CacheConfig = {}): XCache {
  const cache = new XCache({ kvUrl: server.url, operationTimeout: 10, ...config });
  cache.on("error", () => {});
  caches.push(cache);
  return cache;
}

const field = async (of: RedisServer, name: string): Promise<string | undefined> =>
  new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(await of.cli("INFO", "replication"))?.[1];

/** The server copies the data of the other one, which is empty. */
async function demote(): Promise<void> {
  await server.cli("REPLICAOF", "127.0.0.1", String(other.port));
  await until(async () => (await field(server, "master_link_status")) === "up", {
    what: "the server has taken over the other one's data",
  });
}

/** The remaining steps of a scan. */
async function rest(keys: AsyncIterator<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const key of { [Symbol.asyncIterator]: () => keys }) found.push(key);
  return found;
}

describe("behind sentinels", () => {
  let sentinel: FakeServer;
  let master: RedisServer;

  beforeEach(async () => {
    master = server;
    sentinel = await FakeServer.start((command, client) => sentinelFor(master.port)(command, client));
  });
  afterEach(() => sentinel.stop());

  const openBySentinel = (config: CacheConfig = {}, login = ""): XCache =>
    open({ kvUrl: `redis+sentinel://${login}127.0.0.1:${sentinel.port}/main`, ...config });

  /** Makes the other server the master, and waits until the cache uses it. */
  async function failOver(): Promise<void> {
    master = other;
    const listener = await sentinel.received("SUBSCRIBE");
    const news = bulk(`main 127.0.0.1 ${server.port} 127.0.0.1 ${other.port}`);
    listener.say(`>3\r\n+message\r\n++switch-master\r\n${news}`);
    await until(async () => (await other.cli("CLIENT", "LIST")).includes("name=xcache"), {
      what: "the cache has found the new master",
    });
  }

  it.each([false, true])(
    "a scan of another server does not count as an invalidation (near_cache: %s)",
    async (nearCache) => {
      const cache = openBySentinel({ nearCache });
      await cache.set("a:1", "old");
      // The sentinel knows of a failover that it has not announced yet.
      master = other;
      expect(await failure(cache.invalidatePattern("a:*"))).toBeInstanceOf(ConnectionError);
      expect(await cache.get("a:1")).toBeUndefined();
    },
  );

  it("a scan of another server does not count as a list of keys", async () => {
    const cache = openBySentinel();
    await cache.set("a:1", "old");
    master = other;
    expect(await failure(rest(cache.keys()[Symbol.asyncIterator]()))).toBeInstanceOf(ConnectionError);
  });

  it("a scan that has begun fails when another server takes over", async () => {
    const cache = openBySentinel();
    await cache.setMany(Array.from({ length: ENTRIES }, (_, at) => [`k${at}`, at] as const));
    const keys = cache.keys()[Symbol.asyncIterator]();
    await keys.next();
    await failOver();
    expect(await failure(rest(keys))).toBeInstanceOf(ConnectionError);
  });

  /** Forbids scripts. */
  async function forbidScripts(): Promise<void> {
    for (const each of [server, other])
      await each.cli(..."ACL SETUSER app on >secret-word ~* &* +@all -eval -evalsha".split(" "));
  }

  it("swaps without scripts go only to the server in use", async () => {
    await forbidScripts();
    await open({ kvUrl: server.url }).set("k", "old");
    await other.cli("REPLICAOF", "127.0.0.1", String(server.port));
    await until(async () => (await field(other, "master_link_status")) === "up", {
      what: "the other server has a copy",
    });
    await other.cli("REPLICAOF", "NO", "ONE");
    const cache = openBySentinel({}, "app:secret-word@");
    expect(await cache.get("k")).toBe("old");
    // The sentinel knows of a failover that it has not announced yet.
    master = other;
    expect(await cache.delete("k")).toBe(1);
    expect(await cache.getOrSet("k", () => "new")).toBe("new");
  });

  it("swaps without scripts that a replica refuses trigger a search for the master", async () => {
    await forbidScripts();
    const cache = openBySentinel({}, "app:secret-word@");
    await cache.getOrSet("before", () => 1);
    master = other;
    await server.cli("REPLICAOF", "127.0.0.1", "1");
    // Refused at the first attempt at the latest, which starts the search for the master.
    await cache.getOrSet("after", () => 2);
    expect(await cache.getOrSet("then", () => 3)).toBe(3);
    expect(await other.cli("KEYS", "*:then")).toContain("then");
  });

  it("swaps without scripts go to the server that took over", async () => {
    await forbidScripts();
    const cache = openBySentinel({}, "app:secret-word@");
    await cache.getOrSet("before", () => 1);
    await failOver();
    await cache.getOrSet("after", () => 2);
    expect(await cache.get("after")).toBe(2);
  });
});

describe("a server that becomes a replica during a scan fails it", () => {
  /** A scan that has begun and takes several steps. */
  async function begun(...rules: readonly string[]): Promise<AsyncIterator<string>> {
    await server.cli("ACL", "SETUSER", "app", "on", ">secret-word", "~*", "&*", "+@all", ...rules);
    const cache = open({ kvUrl: server.url.replace("redis://", "redis://app:secret-word@") });
    await cache.setMany(Array.from({ length: ENTRIES }, (_, at) => [`k${at}`, at] as const));
    const keys = cache.keys()[Symbol.asyncIterator]();
    await keys.next();
    return keys;
  }

  it("when it stays one", async () => {
    const keys = await begun();
    await demote();
    expect(await failure(rest(keys))).toBeInstanceOf(ConnectionError);
  });

  it("when INFO is refused", async () => {
    const keys = await begun("-info");
    await demote();
    expect(await failure(rest(keys))).toBeInstanceOf(ConnectionError);
  });

  it("when it is the master again", async () => {
    const keys = await begun();
    await demote();
    await server.cli("REPLICAOF", "NO", "ONE");
    expect(await failure(rest(keys))).toBeInstanceOf(ConnectionError);
  });
});

it("a scan works on a server that was restarted before it", async () => {
  const cache = open();
  await cache.set("a", 1);
  await server.restart();
  await until(async () => (await cache.get("a")) === undefined, { what: "the server answers" });
  await cache.set("b", 1);
  expect(await cache.invalidatePattern("b")).toBe(1);
});
