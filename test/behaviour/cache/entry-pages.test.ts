// scan() and inspect() on every store: filters, cursors that continue, signals, and what a store cannot list.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import {
  type EntryInfo,
  type EntryScanOptions,
  InvalidKeyError,
  UnsupportedError,
  XCache,
} from "../../../src/index.ts";
import { startMemcached } from "../../support/memcached.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { runFolder } from "../../support/run-folder.ts";
import { until } from "../../support/until.ts";

let redis: RedisServer;
let cluster: RedisCluster;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(runFolder(), "pages-"));
  [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
});
afterAll(async () => {
  await Promise.all([redis.stop(), cluster.stop()]);
  rmSync(directory, { recursive: true, force: true });
});

const STORES: Readonly<Record<string, () => { kvUrl: string } | { backend: DiskBackend }>> = {
  memory: () => ({ kvUrl: "memory://" }),
  redis: () => ({ kvUrl: redis.url }),
  cluster: () => ({ kvUrl: cluster.url }),
  disk: () => ({ backend: new DiskBackend({ directory }) }),
};

let prefixes = 0;
function open(store: string): XCache {
  const settings = STORES[store] as (typeof STORES)[string];
  const cache = new XCache({ ...settings(), keyPrefix: `p${++prefixes}`, operationTimeout: 10 });
  onTestFinished(() => cache.disconnect());
  return cache;
}

async function listed(cache: XCache, options?: EntryScanOptions): Promise<EntryInfo[]> {
  const found = new Map<string, EntryInfo>();
  for await (const { entries } of cache.scan(options)) for (const each of entries) found.set(each.key, each);
  return [...found.values()].toSorted((one, other) => (one.key < other.key ? -1 : 1));
}

const keysOf = async (cache: XCache, options?: EntryScanOptions): Promise<string[]> =>
  (await listed(cache, options)).map(({ key }) => key);

describe.each(Object.keys(STORES))("on %s", (store) => {
  it("filters by prefix, glob, tag, type and state, and returns what is known of each entry", async () => {
    const cache = open(store);
    await cache.set("user:1", { name: "Ada" }, { ttl: 600, tags: ["users", "team:3"] });
    await cache.set("user:2", "text", { ttl: Number.POSITIVE_INFINITY, tags: ["users"] });
    await cache.set("list", [1, 2], { ttl: 600 });
    await cache.getOrSet("old", () => 1, { ttl: 0.001, staleIfError: 600 });
    await until(async () => (await cache.inspect("old"))?.state === "stale", { what: "it has expired" });

    expect(await keysOf(cache)).toEqual(["list", "old", "user:1", "user:2"]);
    expect(await keysOf(cache, { prefix: "user:" })).toEqual(["user:1", "user:2"]);
    expect(await keysOf(cache, { match: "*:2" })).toEqual(["user:2"]);
    expect(await keysOf(cache, { tags: "team:3" })).toEqual(["user:1"]);
    expect(await keysOf(cache, { type: "array" })).toEqual(["list"]);
    expect(await keysOf(cache, { state: "stale" })).toEqual(["old"]);
    expect(await keysOf(cache, { state: "fresh", types: true })).toEqual(["list", "user:1", "user:2"]);

    const [first] = await listed(cache, { match: "user:1", types: true });
    expect(first).toMatchObject({ state: "fresh", tags: ["users", "team:3"], type: "object", staleFor: 0 });
    expect(first?.ttl).toBeGreaterThan(590);
    expect(first?.bytes).toBeGreaterThan(10);
    expect(await cache.inspect("user:2")).toMatchObject({ ttl: Number.POSITIVE_INFINITY, type: "string" });
    const old = await cache.inspect("old");
    expect(old).toMatchObject({ state: "stale", ttl: 0, type: "number" });
    expect(old?.staleFor).toBeGreaterThan(590);
    expect(await cache.inspect("absent")).toBeUndefined();
  });

  it("continues after the cursor of a page, and misses nothing", async () => {
    const cache = open(store);
    const all = Array.from({ length: 3_000 }, (_, at) => `key:${String(at).padStart(4, "0")}`);
    await cache.setMany(all.map((key) => [key, 1] as const));
    const found = new Set<string>();
    let cursor: string | undefined;
    let parts = 0;
    do {
      const next: string | undefined = cursor;
      cursor = undefined;
      for await (const page of cache.scan(next === undefined ? {} : { cursor: next })) {
        for (const { key } of page.entries) found.add(key);
        cursor = page.cursor;
        if (cursor !== undefined) break;
      }
      parts++;
    } while (cursor !== undefined);
    expect(parts).toBeGreaterThan(1);
    expect([...found].toSorted()).toEqual(all);
  });

  it("rejects an invalid cursor, and ends when the signal aborts", async () => {
    const cache = open(store);
    await cache.set("a", 1);
    for (const cursor of ["", "nothing", "kv:x", "disk:7", "memory:99", "other:1"]) {
      await expect(keysOf(cache, { cursor })).rejects.toMatchObject({ code: "ARGUMENT_INVALID" });
    }
    expect(await keysOf(cache, { signal: AbortSignal.abort() })).toEqual([]);
  });

  it("does not count as a read", async () => {
    const cache = open(store);
    await cache.set("a", 1);
    const before = cache.getComprehensiveMetrics().totalOperations;
    await keysOf(cache, { types: true });
    await cache.inspect("a");
    expect(cache.getComprehensiveMetrics()).toMatchObject({ totalOperations: before });
    expect((await cache.getStats()).totalHits).toBe(0);
  });
});

it("memcached reports that it cannot list keys, and inspects one", async () => {
  const server = await startMemcached();
  onTestFinished(() => server.stop());
  const cache = new XCache({ kvUrl: server.url, operationTimeout: 10 });
  onTestFinished(() => cache.disconnect());
  await cache.set("a", 1, { tags: ["t"] });
  await expect(keysOf(cache)).rejects.toThrow(UnsupportedError);
  expect(await cache.inspect("a")).toMatchObject({ key: "a", tags: ["t"], type: "number" });
});

it.each([
  [{ state: "old" }, /state must be "fresh" or "stale"/],
  [{ prefix: 7 }, /prefix must be a string/],
  [{ tag: "x" }, /unknown option "tag"/],
  [{ match: "[a" }, /pattern|glob/i],
  [{ signal: 1 }, /AbortSignal/],
  [{ types: "yes" }, /types must be true or false/],
])("bad options are rejected immediately: %j", (options, message) => {
  const cache = open("memory");
  expect(() => cache.scan(options as never)).toThrow(message);
});

it("inspect rejects anything that is not a key", async () => {
  await expect(open("memory").inspect("")).rejects.toThrow(InvalidKeyError);
});
