// The unstorage driver with the real library: the tests of its own drivers, on a real server.
import {
  createStorage,
  type Driver,
  prefixStorage,
  restoreSnapshot,
  type Storage,
  snapshot,
} from "unstorage";
import { describe, expect, test } from "vitest";
import { ConfigError, ConnectionError } from "../../src/core/errors.ts";
import { type UnstorageDriverOptions, unstorageDriver } from "../../src/ecosystem/unstorage.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { redisCaches } from "../support/redis-caches.ts";
import { failingCache } from "./failing-cache.ts";

const caches = redisCaches({ operationTimeout: 10 });
const storageOn = (driver: Driver = unstorageDriver(caches.open())): Storage => createStorage({ driver });
const sorted = async (keys: Promise<string[]>): Promise<string[]> => (await keys).sort();

describe("items", () => {
  test("are absent at first, and gone once removed", async () => {
    const storage = storageOn();
    expect([
      await storage.hasItem("s1:a"),
      await storage.getItem("s1:a"),
      await storage.getItemRaw("s1:a"),
    ]).toEqual([false, null, null]);
    expect(await storage.getKeys()).toEqual([]);
    await storage.setItem("s1:a", "data");
    expect([await storage.hasItem("s1:a"), await storage.getItem("s1:a")]).toEqual([true, "data"]);
    await storage.removeItem("s1:a");
    expect([await storage.hasItem("s1:a"), await storage.getItem("s1:a")]).toEqual([false, null]);
    await storage.setItem("s1:a", "data");
    await storage.setItem("s1:a", undefined as unknown as string);
    expect(await storage.hasItem("s1:a")).toBe(false);
  });

  test("are identified by their key without a query, with / and : equivalent", async () => {
    const storage = storageOn();
    await storage.setItem("s3:a?q=1", "data");
    await storage.setItem("/data/file.json", { json: "works" });
    expect(await storage.getItem("s3:a?q=2")).toBe("data");
    expect(await storage.getItem("data:file.json")).toEqual({ json: "works" });
    expect(await sorted(storage.getKeys())).toEqual(["data:file.json", "s3:a"]);
  });

  test.each([[0], [false], [true], [""], [{ a: [1] }], [[1, "2"]]])("hold %j", async (value) => {
    const storage = storageOn();
    await storage.setItem("key", value);
    expect(await storage.getItem("key")).toEqual(value);
  });

  test("of a class are stored by their toJSON, or rejected", async () => {
    const storage = storageOn();
    await storage.setItem("a", { toJSON: () => "text" } as object);
    class Opaque {}
    await expect(storage.setItem("b", new Opaque())).rejects.toThrow("Cannot stringify value");
  });

  test("are read and written together, each with its own lifetime", async () => {
    const { cache } = memoryCache();
    const storage = storageOn(unstorageDriver(cache));
    await storage.setItems(
      [
        { key: "t:1", value: "one", options: { ttl: 5 } },
        { key: "t:2", value: "two" },
      ],
      { ttl: 60 },
    );
    expect(await storage.getItems(["t:2", { key: "t:1?q" }, "t:none"])).toEqual([
      { key: "t:2", value: "two" },
      { key: "t:1", value: "one" },
      { key: "t:none", value: null },
    ]);
    const space = cache.namespace("unstorage");
    expect([await space.ttl("t:1"), await space.ttl("t:2")]).toEqual([5, 60]);
  });
});

describe("raw items", () => {
  test("are bytes as they were", async () => {
    const storage = storageOn();
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    await storage.setItemRaw("data:raw.bin", bytes);
    expect(await storage.getItemRaw("data:raw.bin")).toEqual(bytes);
    await storage.setItemRaw("buffer", Buffer.from(bytes));
    const buffer = await storage.getItemRaw<Buffer>("buffer");
    expect(Buffer.isBuffer(buffer) && buffer.equals(bytes)).toBe(true);
  });

  test("are any value the cache can store, and the text of an item", async () => {
    const storage = storageOn();
    const value = { at: new Date(5), map: new Map([[1n, new Set(["x"])]]) };
    await storage.setItemRaw("value", value);
    expect(await storage.getItemRaw("value")).toEqual(value);
    await storage.setItem("item", { a: 1 });
    expect(await storage.getItemRaw("item")).toBe('{"a":1}');
  });
});

describe("keys", () => {
  async function filled(): Promise<Storage> {
    const storage = storageOn();
    const keys = ["top", "a:top", "a:b:one", "a:b:two", "a*:star", "ab:other"];
    await Promise.all(keys.map((key) => storage.setItem(key, key)));
    return storage;
  }

  test("are listed under a base of any characters, and to a depth", async () => {
    const storage = await filled();
    expect(await sorted(storage.getKeys())).toEqual([
      "a*:star",
      "a:b:one",
      "a:b:two",
      "a:top",
      "ab:other",
      "top",
    ]);
    expect(await sorted(storage.getKeys("a"))).toEqual(["a:b:one", "a:b:two", "a:top"]);
    expect(await sorted(storage.getKeys("a*"))).toEqual(["a*:star"]);
    expect(await sorted(storage.getKeys(undefined, { maxDepth: 0 }))).toEqual(["top"]);
    expect(await sorted(storage.getKeys("a", { maxDepth: 1 }))).toEqual(["a:top"]);
  });

  test("are cleared under a base, and only there", async () => {
    const storage = await filled();
    await storage.getMount().driver.clear?.("a:", {});
    expect(await sorted(storage.getKeys())).toEqual(["a*:star", "ab:other", "top"]);
    await storage.clear();
    expect(await storage.getKeys()).toEqual([]);
    await storage.clear();
  });

  test("are listed completely, however many there are", async () => {
    const storage = storageOn();
    const items = Array.from({ length: 1_200 }, (_, at) => ({ key: `many:${at}`, value: "x" }));
    await storage.setItems([...items, { key: "one", value: "x" }]);
    expect(await storage.getKeys("many")).toHaveLength(1_200);
    await storage.getMount().driver.clear?.("many:", {});
    expect(await storage.getKeys()).toEqual(["one"]);
  });
});

test("clear removes only the driver's items, and mounts are isolated", async () => {
  const cache = caches.open();
  await cache.set("own", 1);
  const storage = storageOn(unstorageDriver(cache));
  storage.mount("mounted", unstorageDriver(cache, { namespace: "other" }));
  await storage.setItem("key", "root");
  await prefixStorage(storage, "mounted").setItem("key", "mounted");
  expect(await sorted(storage.getKeys())).toEqual(["key", "mounted:key"]);
  await storage.clear("mounted");
  expect([await storage.getItem("key"), await storage.getItem("mounted:key")]).toEqual(["root", null]);
  expect(await cache.get("own")).toBe(1);
});

test("the ttl is in seconds: the item's, else the driver's, else none; getMeta reports it", async () => {
  const { cache, clock } = memoryCache();
  const storage = storageOn(unstorageDriver(cache));
  const limited = storageOn(unstorageDriver(cache, { namespace: "limited", ttl: 60 }));
  await storage.setItem("short", "x", { ttl: 2 });
  await storage.setItemRaw("raw", new Uint8Array(1), { ttl: 2 });
  await storage.setItem("ever", "x");
  await storage.setItem("zero", "x", { ttl: 0 });
  await limited.setItem("usual", "x");
  await storage.setMeta("ever", { owner: "me" });
  expect(await storage.getMeta("short")).toEqual({ ttl: 2 });
  expect(await storage.getMeta("ever")).toEqual({ owner: "me" });
  expect(await limited.getMeta("usual")).toEqual({ ttl: 60 });
  await clock.advance(2_000);
  expect([await storage.hasItem("short"), await storage.getItemRaw("raw")]).toEqual([false, null]);
  await clock.advance(1e11);
  expect(await sorted(storage.getKeys())).toEqual(["ever", "zero"]);
  expect(await limited.hasItem("usual")).toBe(false);
});

test("a ttl of 0 means no expiry, even if the driver has a default", async () => {
  const { cache } = memoryCache();
  const storage = storageOn(unstorageDriver(cache, { ttl: 60 }));
  await storage.setItem("zero", "x", { ttl: 0 });
  await storage.setItemRaw("raw", "x", { ttl: 0 });
  const space = cache.namespace("unstorage");
  expect([await space.ttl("zero"), await space.ttl("raw")]).toEqual([Infinity, Infinity]);
  await expect(storage.setItem("key", "x", { ttl: Number.NaN })).rejects.toBeInstanceOf(ConfigError);
});

test("invalid options are rejected immediately", () => {
  const { cache } = memoryCache();
  for (const ttl of [-1, Number.NaN]) expect(() => unstorageDriver(cache, { ttl })).toThrow(ConfigError);
  expect(() => unstorageDriver(cache, { base: "x" } as UnstorageDriverOptions)).toThrow(/"base"/);
});

test("a snapshot can be taken and restored", async () => {
  const storage = storageOn();
  await restoreSnapshot(storage, { initial: "works", "deep:key": "too" });
  expect(await snapshot(storage, "")).toEqual({ initial: "works", "deep:key": "too" });
});

test("watchers are notified of changes through the storage", async () => {
  const storage = storageOn();
  const seen: string[] = [];
  await storage.watch((event, key) => void seen.push(`${event} ${key}`));
  await storage.setItem("a", "x");
  await storage.removeItem("a");
  expect(seen).toEqual(["update a", "remove a"]);
});

test("every operation rejects if the store fails", async () => {
  const { cache, fail } = failingCache();
  const storage = storageOn(unstorageDriver(cache));
  fail();
  const calls = [
    storage.getItem("a"),
    storage.hasItem("a"),
    storage.setItem("a", "x"),
    storage.getKeys(),
    storage.clear(),
  ];
  for (const call of calls) await expect(call).rejects.toBeInstanceOf(ConnectionError);
});

test("dispose closes a cache created from a configuration", async () => {
  const storage = storageOn(unstorageDriver({ kvUrl: "memory://" }));
  await storage.setItem("a", "x");
  await storage.dispose();
  await expect(storage.getItem("a")).rejects.toThrow(/disconnect/);
});
