// The permissions that docs/guide/kv.md lists for the server's user: together they suffice, and each one is needed.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { slotOf } from "../../../src/backends/kv/cluster/slots.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { XCache } from "../../../src/xcache.ts";
import { beginMove, seats } from "../../support/kv/cluster-layout.ts";
import { opened } from "../../support/kv/opened.ts";
import { codeBlocksOf } from "../../support/markdown.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { redisCli } from "../../support/redis-cli.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { startSentinel } from "../../support/redis-sentinel.ts";
import { until } from "../../support/until.ts";

const LOGIN = "xcache:change-me@";

const page = readFileSync(join(import.meta.dirname, "../../../docs/guide/kv.md"), "utf8");
const [forServers, forSentinels] = codeBlocksOf(page)
  .map(({ code }) => code.split(/\s+/))
  .filter(([command]) => command === "ACL");

const withLogin = (url: string): string => url.replace("://", `://${LOGIN}`);

/** Returns the server's log of refused commands, and resets it. */
async function refusals(server: RedisServer): Promise<string> {
  const log = await server.cli("ACL", "LOG");
  await server.cli("ACL", "LOG", "RESET");
  return log.trim();
}

function open(url: string, config: CacheConfig = {}): XCache {
  return new XCache({ kvUrl: withLogin(url), nearCache: true, ...config });
}

async function count(keys: AsyncIterable<string>): Promise<number> {
  let found = 0;
  for await (const _ of keys) found++;
  return found;
}

/** Everything the cache can do, with and without the near tier. */
async function exercise(url: string, config: CacheConfig = {}): Promise<void> {
  for (const nearCache of [true, false]) await exerciseOnce(url, { nearCache, ...config });
}

async function exerciseOnce(url: string, config: CacheConfig): Promise<void> {
  const cache = open(url, config);
  try {
    for (const one of [cache, cache.namespace("child")]) {
      await one.set("a", 1, { tags: ["t"] });
      await one.setMany([["b", 2]]);
      for (let read = 0; read < 3; read++) expect(await one.get("a")).toBe(1);
      expect((await one.getMany(["a", "b", "c"])).size).toBe(2);
      expect(await one.getOrSet("c", () => 3, { tags: ["t", "u"] })).toBe(3);
      const unstored = await one.getOrSet("d", ({ skip }) => {
        skip();
        return 4;
      });
      expect(unstored).toBe(4);
      expect(await one.exists("c")).toBe(true);
      expect(await one.tags("c")).toEqual(["t", "u"]);
      expect(await one.ttl("c")).toBeGreaterThan(0);
      expect(await count(one.keys())).toBe(3);
      expect(await one.getStats()).toMatchObject({ totalKeys: 3 });
      expect(await one.getStats({ exact: true })).toMatchObject({ totalKeys: 3 });
      await one.invalidateTags("t");
      expect(await one.get("a")).toBeUndefined();
      expect(await one.invalidatePattern("b*")).toBe(1);
      await one.set("a", 1);
      expect(await one.delete("a")).toBe(1);
      await one.clear();
    }
    expect(await cache.health()).toBe(true);
    expect(await cache.detailedHealthCheck()).toMatchObject({ status: "healthy" });
  } finally {
    await cache.disconnect();
  }
  // Work that a cache does only every few seconds.
  await using backend = opened(withLogin(url));
  await backend.touch(["xcache!n"]);
}

describe("on one server, the user of the guide", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  /** Starts from an empty server, with no scripts cached. */
  async function exerciseAs(rules: readonly string[]): Promise<{ refused: string; failed: boolean }> {
    await server.cli("FLUSHALL");
    await server.cli("SCRIPT", "FLUSH");
    await server.cli("ACL", "DELUSER", "xcache");
    await server.cli(...rules);
    const database = server.url.replace(/0$/, "1");
    const outcome = await exercise(database).then(
      () => false,
      () => true,
    );
    return { refused: await refusals(server), failed: outcome };
  }

  it("can do everything without a refusal", async () => {
    await server.cli(...forServers!);
    await exercise(server.url);
    expect(await refusals(server)).toBe("");
    expect(await exerciseAs(forServers!)).toEqual({ refused: "", failed: false });
  });

  it("receives invalidations, so that the near tier works", async () => {
    await server.cli(...forServers!);
    const [one, other] = [open(server.url), open(server.url)];
    await one.set("k", 1, { tags: ["t"] });
    expect(await one.get("k")).toBe(1);
    await other.invalidateTags("t");
    await until(async () => (await one.get("k")) === undefined, { what: "it is seen", timeoutMs: 2_000 });
    await using backend = opened(withLogin(server.url));
    expect(await backend.describe()).toMatchObject({ tracking: true });
    for (const cache of [one, other]) await cache.disconnect();
    expect(await refusals(server)).toBe("");
  });

  const elsewhere = ["+cluster|slots", "+cluster|myid", "+cluster|nodes", "+asking", "+client|kill"];
  const rights = forServers!.filter((rule) => /^[+~]/.test(rule) && !elsewhere.includes(rule));

  it("needs +client|kill once a connection is lost with a write in flight", async () => {
    for (const [rules, refused] of [
      [forServers!, ""],
      [forServers!.filter((rule) => rule !== "+client|kill"), expect.stringContaining("client|kill")],
    ] as const) {
      await server.cli("ACL", "DELUSER", "xcache");
      await server.cli(...rules);
      const cache = open(server.url, { operationTimeout: 0.2 });
      cache.on("error", () => {});
      await cache.set("k", "old");
      server.freeze();
      await expect(cache.set("k", "new")).rejects.toThrow("operation_timeout");
      server.thaw();
      await until(async () => (await cache.get("k")) !== "old", { what: "it is back" });
      await cache.disconnect();
      expect(await refusals(server)).toEqual(refused);
    }
  });

  it.each(rights)("needs %s", async (right) => {
    const { refused } = await exerciseAs(forServers!.filter((rule) => rule !== right));
    expect(refused).toContain(right.startsWith("+") ? right.slice(1) : right.slice(1, -1));
  });

  it("cannot reach other keys", async () => {
    await server.cli(...forServers!);
    const stranger = open(server.url, { keyPrefix: "xcache2" });
    await expect(stranger.set("k", 1)).rejects.toMatchObject({
      hint: expect.stringContaining("docs/guide/kv.md"),
    });
    await stranger.disconnect();
    expect(await refusals(server)).toContain("xcache2");
  });
});

describe("on a cluster, the user of the guide", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ replicas: 0 });
    await Promise.all(cluster.nodes.map((node) => node.cli(...forServers!)));
  });
  afterAll(() => cluster.stop());

  const allRefusals = async (): Promise<string> =>
    (await Promise.all(cluster.nodes.map(refusals))).join("").trim();

  it("can do everything without a refusal, even while a slot moves", async () => {
    await exercise(cluster.url);
    const all = await seats(cluster);
    const slot = slotOf("xcache:moving");
    const from = all.find((seat) => seat.holds(slot))!;
    await beginMove({ slot, from, to: all.find((seat) => seat !== from)! });
    const cache = open(cluster.url);
    expect(await cache.get("moving")).toBeUndefined();
    await cache.set("moving", 1);
    expect(await cache.get("moving")).toBe(1);
    await cache.disconnect();
    expect(await allRefusals()).toBe("");
  });

  it("needs the permissions that only a cluster requires", async () => {
    for (const right of ["cluster|slots", "asking"]) {
      await Promise.all(cluster.nodes.map((node) => node.cli("ACL", "SETUSER", "xcache", `-${right}`)));
      const cache = open(cluster.url);
      await cache.get("moving").catch(() => {});
      await cache.disconnect();
      expect(await allRefusals()).toContain(right);
      await Promise.all(cluster.nodes.map((node) => node.cli("ACL", "SETUSER", "xcache", `+${right}`)));
    }
  });
});

describe("at sentinels, the user of the guide", () => {
  it("can look up the master and is notified of a failover", async () => {
    await using sentinel = await startSentinel();
    await Promise.all([
      ...sentinel.servers.map((server) => server.cli(...forServers!)),
      ...sentinel.sentinels.map(({ port }) => redisCli(port, {}, forSentinels!)),
    ]);
    const url = `${sentinel.url}?sentinel_username=xcache&sentinel_password=change-me`;
    await exercise(url);
    await using backend = opened(withLogin(url));
    await backend.connect();
    const ports = sentinel.sentinels.map(({ port }) => port);
    const askAll = (...args: string[]): Promise<string[]> =>
      Promise.all(ports.map((port) => redisCli(port, {}, args)));
    await until(async () => / name=xcache .* sub=1 /.test((await askAll("CLIENT", "LIST")).join("\n")), {
      what: "a sentinel is listened to",
    });
    expect((await askAll("ACL", "LOG")).join("").trim()).toBe("");
    expect(await refusals(await sentinel.master())).toBe("");
  });
});
