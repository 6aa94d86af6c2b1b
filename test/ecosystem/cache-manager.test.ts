// The cache-manager store with the real library.
import { createCache } from "cache-manager";
import type { Keyv } from "keyv";
import { expect, test } from "vitest";
import { ConfigError, ConnectionError, InvalidKeyError } from "../../src/core/errors.ts";
import { type CacheManagerStoreOptions, cacheManagerStore } from "../../src/ecosystem/cache-manager.ts";
import type { XCache } from "../../src/xcache.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { redisCaches } from "../support/redis-caches.ts";
import { failingCache } from "./failing-cache.ts";

const caches = redisCaches({ operationTimeout: 10 });
const managerOn = (cache: XCache, ttl?: number) =>
  createCache({ stores: [cacheManagerStore(cache)], ...(ttl === undefined ? {} : { ttl }) });

test("values are set, read and deleted, individually and together, without conversion to JSON", async () => {
  const manager = managerOn(caches.open());
  const value = { at: new Date(5), bytes: Buffer.from([0, 255]), set: new Set([1n]) };
  expect(await manager.set("key", value)).toEqual(value);
  expect(await manager.get("key")).toEqual(value);
  await manager.mset([
    { key: "a", value: null },
    { key: "b", value: 0 },
  ]);
  expect(await manager.mget(["b", "absent", "a"])).toEqual([0, undefined, null]);
  expect(await manager.del("a")).toBe(true);
  expect(await manager.mdel(["b", "key"])).toBe(true);
  expect(await manager.mget(["a", "b", "key"])).toEqual([undefined, undefined, undefined]);
});

test("the ttl is in milliseconds: the call's, else the manager's, else none", async () => {
  const cache = caches.open();
  const manager = managerOn(cache, 60_000);
  const space = cache.namespace("keyv:cache-manager");
  await manager.set("own", 1, 5_500);
  await manager.set("usual", 1);
  await managerOn(cache).set("ever", 1);
  expect(await space.ttl("own")).toBeGreaterThan(5);
  expect(await space.ttl("own")).toBeLessThanOrEqual(5.5);
  expect(await space.ttl("usual")).toBeGreaterThan(59);
  expect(await space.ttl("ever")).toBe(Infinity);
  const left = (await manager.ttl("own"))! - Date.now();
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(5_500);
});

test("wrap calls the function once, even for falsy values, and again after a delete", async () => {
  const manager = managerOn(caches.open());
  let calls = 0;
  const load = async () => (++calls === 1 ? null : calls);
  expect([await manager.wrap("key", load, 60_000), await manager.wrap("key", load, 60_000)]).toEqual([
    null,
    null,
  ]);
  await manager.del("key");
  expect(await manager.wrap("key", load, 60_000)).toBe(2);
});

test("clear empties its namespace only", async () => {
  const cache = caches.open();
  const other = createCache({ stores: [cacheManagerStore(cache, { namespace: "other" })] });
  const manager = managerOn(cache);
  await cache.set("own", 1);
  await other.set("key", 2);
  await manager.set("key", 3);
  await manager.clear();
  expect([await manager.get("key"), await other.get("key"), await cache.get("own")]).toEqual([
    undefined,
    2,
    1,
  ]);
});

test("in front of another store it is filled from that store", async () => {
  const [near, far] = [memoryCache().cache, caches.open()];
  await managerOn(far).set("key", "far", 60_000);
  const manager = createCache({ stores: [cacheManagerStore(near), cacheManagerStore(far)], ttl: 60_000 });
  expect(await manager.wrap("key", async () => "loaded")).toBe("far");
  expect(await managerOn(near).get("key")).toBe("far");
});

test("a failing store counts as empty, or rejects with throwOnErrors", async () => {
  const { cache, fail } = failingCache();
  fail();
  const quiet = managerOn(cache);
  expect(await quiet.get("key")).toBeUndefined();
  expect(await quiet.set("key", 1)).toBe(1);
  expect(await quiet.wrap("key", async () => "loaded")).toBe("loaded");
  const loud = createCache({ stores: [cacheManagerStore(cache, { throwOnErrors: true })] });
  await expect(loud.set("key", 1)).rejects.toBeInstanceOf(ConnectionError);
  await expect(loud.del("key")).rejects.toBeInstanceOf(ConnectionError);
  await expect(loud.clear()).rejects.toBeInstanceOf(ConnectionError);
  expect([await loud.get("key"), await loud.mget(["key"])]).toEqual([undefined, [undefined]]);
});

test("its type fits both import and require of cache-manager", () => {
  type Required = typeof import("cache-manager", { with: { "resolution-mode": "require" }});
  const stores: NonNullable<NonNullable<Parameters<Required["createCache"]>[0]>["stores"]> = [
    cacheManagerStore(memoryCache().cache),
  ];
  const usual: Keyv = cacheManagerStore(memoryCache().cache);
  expect([stores[0]?.namespace, usual.namespace]).toEqual(["cache-manager", "cache-manager"]);
});

test("invalid options are rejected immediately", () => {
  const { cache } = memoryCache();
  expect(() => cacheManagerStore(cache, { prefix: "x" } as CacheManagerStoreOptions)).toThrow(/"prefix"/);
  expect(() => cacheManagerStore(cache, { namespace: "" })).toThrow(InvalidKeyError);
  expect(() => cacheManagerStore(cache, { throwOnErrors: "no" } as never)).toThrow(ConfigError);
});

test("disconnect closes a cache created from a configuration", async () => {
  const manager = createCache({
    stores: [cacheManagerStore({ kvUrl: "memory://" }, { throwOnErrors: true })],
  });
  await manager.set("key", 1);
  await manager.disconnect();
  await expect(manager.set("key", 1)).rejects.toThrow(/disconnect/);
});
