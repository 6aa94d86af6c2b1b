// The Keyv store with the real library: its contract, namespaces, lifetimes and failures.
import { Keyv, type KeyvStoreAdapter } from "keyv";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError, ConnectionError } from "../../src/core/errors.ts";
import { type KeyvStoreOptions, XCacheKeyvStore } from "../../src/ecosystem/keyv.ts";
import { XCache } from "../../src/xcache.ts";
import { listed, memoryCache } from "../behaviour/cache/memory-cache.ts";
import { redisCaches } from "../support/redis-caches.ts";
import { failingCache } from "./failing-cache.ts";

const caches = redisCaches({ operationTimeout: 10 });

/** A Keyv of its own on the server of this file. */
const keyvOn = (cache: XCache, namespace?: string): Keyv =>
  new Keyv({ store: new XCacheKeyvStore(cache), ...(namespace === undefined ? {} : { namespace }) });

/** Without Keyv's JSON: values go through the codec of the cache. */
function rawKeyv(cache: XCache): Keyv {
  const keyv = keyvOn(cache);
  keyv.serialize = undefined;
  keyv.deserialize = undefined;
  return keyv;
}

async function pairs(keyv: Keyv): Promise<[string, unknown][]> {
  return listed(keyv.iterator!(undefined) as AsyncIterable<[string, unknown]>);
}

test("it implements Keyv's store type", () => {
  const store: KeyvStoreAdapter = new XCacheKeyvStore(memoryCache().cache);
  expect(store.namespace).toBeUndefined();
  store.namespace = "mine";
  expect(store.namespace).toBe("mine");
});

test("invalid options are rejected immediately; a namespace belongs to Keyv's options", () => {
  const { cache } = memoryCache();
  expect(() => new XCacheKeyvStore(cache, { namespace: "mine" } as KeyvStoreOptions)).toThrow(/"namespace"/);
  expect(() => new XCacheKeyvStore(cache, { throwOnErrors: 1 } as never)).toThrow(ConfigError);
});

test.each([[undefined], [null], ["redis://user:secret@host"], [Promise.resolve()]])(
  "a value that is neither a cache nor a configuration is refused: %s",
  (source) => {
    const make = () => new XCacheKeyvStore(source as unknown as XCache);
    expect(make).toThrow(ConfigError);
    expect(make).not.toThrow(/secret/);
  },
);

test("an empty configuration uses the defaults", () => {
  expect(() => new XCacheKeyvStore({})).not.toThrow();
});

describe("through Keyv on a real server", () => {
  test("values are set, read, found and deleted individually", async () => {
    const keyv = keyvOn(caches.open());
    expect(await keyv.get("key")).toBeUndefined();
    expect(await keyv.has("key")).toBe(false);
    expect(await keyv.delete("key")).toBe(false);
    expect(await keyv.set("key", "value")).toBe(true);
    expect(await keyv.get("key")).toBe("value");
    expect(await keyv.has("key")).toBe(true);
    expect(await keyv.delete("key")).toBe(true);
    expect(await keyv.get("key")).toBeUndefined();
    expect(await keyv.has("key")).toBe(false);
  });

  test("values are set, read, found and deleted together", async () => {
    const keyv = keyvOn(caches.open());
    const entries = [
      { key: "a", value: 1 },
      { key: "b", value: 2, ttl: 60_000 },
    ];
    expect(await keyv.setMany(entries)).toEqual([true, true]);
    expect(await keyv.getMany(["b", "absent", "a"])).toEqual([2, undefined, 1]);
    expect(await keyv.hasMany(["a", "absent"])).toEqual([true, false]);
    expect(await keyv.deleteMany(["absent"])).toBe(false);
    expect(await keyv.deleteMany(["a", "b"])).toBe(true);
    expect(await keyv.get(["a", "b"])).toEqual([undefined, undefined]);
    expect(await keyv.getMany([])).toEqual([]);
    expect(await keyv.hasMany([])).toEqual([]);
    expect(await keyv.deleteMany([])).toBe(false);
  });

  test.each([
    ["JSON", keyvOn],
    ["the codec", rawKeyv],
  ])("every kind of value comes back by %s", async (_name, make) => {
    const keyv = make(caches.open());
    const values = [false, null, 0, "", 'it\'s "quoted"', { fizz: ["buzz"] }, { bytes: Buffer.from("b") }];
    for (const value of [...values, Buffer.from([0, 255])]) {
      await keyv.set("'key' \"of\" value", value);
      expect(await keyv.get("'key' \"of\" value")).toEqual(value);
    }
    expect(await keyv.set("nothing", undefined)).toBe(true);
    expect(await keyv.get("nothing")).toBeUndefined();
  });

  test("without Keyv's JSON, dates, maps and large integers come back unchanged", async () => {
    const keyv = rawKeyv(caches.open());
    const value = { at: new Date(5), map: new Map([["a", 1n]]) };
    await keyv.set("key", value);
    expect(await keyv.get("key")).toEqual(value);
    expect(await keyv.getMany(["key"])).toEqual([value]);
    expect(await pairs(keyv)).toEqual([["key", value]]);
  });

  test("a namespace neither sees nor clears another, and the cache keeps its own entries", async () => {
    const cache = caches.open();
    await cache.set("own", "kept");
    const [a, b, none] = [keyvOn(cache, "a"), keyvOn(cache, "a:b"), keyvOn(cache, "")];
    for (const [keyv, value] of [[a, 1] as const, [b, 2] as const, [none, 3] as const])
      await keyv.set("key", value);
    expect([await a.get("key"), await b.get("key"), await none.get("key")]).toEqual([1, 2, 3]);
    await a.clear();
    expect([await a.get("key"), await b.get("key"), await none.get("key")]).toEqual([undefined, 2, 3]);
    await none.clear();
    expect([await b.get("key"), await none.get("key")]).toEqual([2, undefined]);
    expect(await cache.get("own")).toBe("kept");
  });

  test("another process finds stored values", async () => {
    await keyvOn(caches.open(), "shared").set("key", "value");
    expect(await keyvOn(caches.open(), "shared").get("key")).toBe("value");
  });

  test("the iterator yields every entry of its namespace and no other", async () => {
    const cache = caches.open();
    const [a, b] = [keyvOn(cache, "a"), keyvOn(cache, "b")];
    await a.setMany(Array.from({ length: 250 }, (_, at) => ({ key: `key:${at}`, value: at })));
    await b.set("key", "other");
    expect(new Map(await pairs(a))).toEqual(
      new Map(Array.from({ length: 250 }, (_, at) => [`key:${at}`, at])),
    );
    expect(await pairs(b)).toEqual([["key", "other"]]);
    expect(await pairs(keyvOn(cache, "empty"))).toEqual([]);
  });
});

describe("a lifetime", () => {
  test("is in milliseconds, and infinite if none is given", async () => {
    const { cache, clock } = memoryCache();
    const store = new XCacheKeyvStore(cache);
    await store.set("short", 1, 1_500);
    await store.set("long", 2);
    await store.set("zero", 3, 0);
    const space = cache.namespace("keyv");
    expect(await space.ttl("short")).toBe(1.5);
    expect([await space.ttl("long"), await space.ttl("zero")]).toEqual([Infinity, Infinity]);
    await clock.advance(1_499);
    expect(await store.has("short")).toBe(true);
    await clock.advance(1);
    expect([await store.has("short"), await store.get("short")]).toEqual([false, undefined]);
    await clock.advance(1e12);
    expect(await store.getMany(["long", "zero"])).toEqual([2, 3]);
  });

  test("of Keyv's own is passed on", async () => {
    const { cache } = memoryCache();
    const keyv = new Keyv({ store: new XCacheKeyvStore(cache), namespace: "n", ttl: 2_000 });
    await keyv.set("key", 1);
    expect(await cache.namespace("keyv:n").ttl("n:key")).toBe(2);
  });

  test("that is negative deletes the key", async () => {
    const store = new XCacheKeyvStore(memoryCache().cache);
    await store.set("key", "old");
    await store.set("key", "new", -1);
    expect(await store.get("key")).toBeUndefined();
  });
});

describe("when the store fails", () => {
  function failing(throwOnErrors = false) {
    const { cache, fail } = failingCache();
    const keyv = new Keyv({ store: new XCacheKeyvStore(cache, { throwOnErrors }), throwOnErrors });
    const errors: unknown[] = [];
    keyv.on("error", (error) => errors.push(error));
    fail();
    return { keyv, errors };
  }

  test("reads miss, writes report it, and each error is emitted once", async () => {
    const { keyv, errors } = failing();
    const outcomeAndErrors = async (call: Promise<unknown>): Promise<unknown[]> => {
      errors.length = 0;
      return [await call, errors.length];
    };
    expect(await outcomeAndErrors(keyv.get("key"))).toEqual([undefined, 1]);
    expect(await outcomeAndErrors(keyv.getMany(["a", "b"]))).toEqual([[undefined, undefined], 1]);
    expect(await outcomeAndErrors(keyv.has("key"))).toEqual([false, 1]);
    expect(await outcomeAndErrors(keyv.hasMany(["a", "b"]))).toEqual([[false, false], 1]);
    expect(await outcomeAndErrors(keyv.set("key", 1))).toEqual([false, 1]);
    expect(await outcomeAndErrors(keyv.delete("key"))).toEqual([false, 1]);
    expect(await outcomeAndErrors(keyv.deleteMany(["a"]))).toEqual([false, 1]);
    expect(await outcomeAndErrors(keyv.clear())).toEqual([undefined, 1]);
    expect(errors[0]).toBeInstanceOf(ConnectionError);
  });

  test("no error listener is required", async () => {
    const { cache, fail, breakConnection } = failingCache();
    const keyv = keyvOn(cache);
    fail();
    breakConnection();
    expect(await keyv.get("key")).toBeUndefined();
    expect(await keyv.getMany(["a", "b"])).toEqual([undefined, undefined]);
    expect([await keyv.has("key"), await keyv.hasMany(["a"])]).toEqual([false, [false]]);
    expect([await keyv.set("key", 1), await keyv.delete("key")]).toEqual([false, false]);
  });

  test("with throwOnErrors every call rejects", async () => {
    const { keyv } = failing(true);
    const calls = [
      keyv.get("a"),
      keyv.getMany(["a"]),
      keyv.has("a"),
      keyv.set("a", 1),
      keyv.delete("a"),
      keyv.clear(),
    ];
    for (const call of calls) await expect(call).rejects.toBeInstanceOf(ConnectionError);
  });

  test("a lost connection is emitted without any call", async () => {
    const { cache, breakConnection } = failingCache();
    const [keyv, other] = [keyvOn(cache), new XCacheKeyvStore(cache)];
    const errors: unknown[] = [];
    keyv.on("error", (error) => errors.push(error));
    other.on("error", (error) => errors.push(error));
    await keyv.set("key", 1);
    breakConnection();
    expect(errors).toEqual([expect.any(ConnectionError), expect.any(ConnectionError)]);
  });
});

describe("disconnect", () => {
  test("closes a cache that the store created from a configuration", async () => {
    const store = new XCacheKeyvStore({ kvUrl: "memory://" });
    const keyv = new Keyv({ store, throwOnErrors: true });
    await keyv.set("key", 1);
    await keyv.disconnect();
    await expect(keyv.get("key")).rejects.toThrow(/disconnect/);
  });

  test("leaves an existing cache to its owner", async () => {
    const cache = new XCache({ kvUrl: "memory://" });
    onTestFinished(() => cache.disconnect());
    const keyv = keyvOn(cache);
    await keyv.set("key", 1);
    await keyv.disconnect();
    expect(await keyv.get("key")).toBe(1);
  });

  test("removes its listener, so that stores can come and go", async () => {
    const { cache, breakConnection } = failingCache();
    const [store, errors] = [new XCacheKeyvStore(cache), [] as Error[]];
    store.on("error", (error) => errors.push(error));
    store.namespace = "mine";
    await store.disconnect();
    breakConnection();
    expect(errors).toEqual([]);
  });
});
