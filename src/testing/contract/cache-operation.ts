// Contract cases: the operations of a cache on this backend.
import assert from "node:assert/strict";
import { UnsupportedError } from "../../core/errors.ts";
import { MAX_KEY_BYTES } from "../../core/keys.ts";
import type { XCache } from "../../xcache.ts";
import { AWKWARD_NAMES } from "./binary-safety.ts";
import { HeldLoad } from "./held-load.ts";
import { type ContractGroup, rule } from "./stage.ts";

/** The keys a cache lists, deduplicated and sorted. */
export async function listedKeys(cache: XCache, pattern?: string): Promise<string[]> {
  const keys = new Set<string>();
  for await (const key of cache.keys(pattern)) keys.add(key);
  return [...keys].sort();
}

/** Asserts that every operation treats the key as absent. */
export async function assertAbsent(cache: XCache, key: string): Promise<void> {
  assert.equal(await cache.get(key), undefined, `get(${key})`);
  assert.equal(await cache.exists(key), false, `exists(${key})`);
  assert.equal(await cache.ttl(key), undefined, `ttl(${key})`);
  assert.equal(await cache.tags(key), undefined, `tags(${key})`);
  assert.equal((await cache.getMany([key])).size, 0, `getMany([${key}])`);
  assert.equal(await cache.delete(key), 0, `delete(${key})`);
}

const single = [
  rule("get returns what set stored, and undefined for what is absent", async (stage) => {
    const cache = stage.cache();
    assert.equal(await cache.get("key"), undefined);
    await cache.set("key", { answer: 42 });
    assert.deepEqual(await cache.get("key"), { answer: 42 });
    await cache.set("key", "other");
    assert.equal(await cache.get("key"), "other");
  }),
  rule("null, false, 0 and empty strings are values like any other", async (stage) => {
    const cache = stage.cache();
    for (const value of [null, false, 0, "", Number.NaN]) {
      await cache.set("key", value);
      assert.ok(Object.is(await cache.get("key"), value), `get after set(${value})`);
      assert.equal(await cache.exists("key"), true);
      assert.ok(
        Object.is(await stage.until(cache.getOrSet("key", () => "loaded")), value),
        `getOrSet of ${value}`,
      );
    }
  }),
  rule("delete removes, and counts the keys that were present", async (stage) => {
    const cache = stage.cache();
    await cache.setMany({ a: 1, b: 2, c: 3 });
    assert.equal(await cache.delete("a"), 1);
    assert.equal(await cache.delete("a"), 0);
    assert.equal(await cache.delete(["a", "b", "absent", "b"]), 1);
    assert.equal(await cache.get("c"), 3);
    await assertAbsent(cache, "b");
  }),
  rule("ttl returns the seconds left, Infinity without expiry, undefined if absent", async (stage) => {
    const cache = stage.cache({ defaultTtl: 500 });
    await cache.set("default", 1);
    await cache.set("minute", 1, { ttl: 60 });
    await cache.set("ever", 1, { ttl: Number.POSITIVE_INFINITY });
    await cache.set("century", 1, { ttl: 100 * 365 * 86_400 });
    const between = (ttl: number | undefined, low: number, high: number): void =>
      assert.ok(
        ttl !== undefined && ttl > low && ttl <= high,
        `ttl is ${ttl}, expected above ${low} up to ${high}`,
      );
    between(await cache.ttl("default"), 440, 500);
    between(await cache.ttl("minute"), 0.1, 60);
    between(await cache.ttl("century"), 99 * 365 * 86_400, 100 * 365 * 86_400);
    assert.equal(await cache.ttl("ever"), Number.POSITIVE_INFINITY);
    assert.equal(await cache.ttl("absent"), undefined);
  }),
  rule("an entry is absent once its ttl has passed", async (stage) => {
    const cache = stage.cache();
    const ttl = stage.shortMs / 1000;
    await cache.set("short", 1, { ttl, tags: ["tag"] });
    await cache.setMany({ many: 1 }, { ttl });
    await stage.until(cache.getOrSet("loaded", () => 1, { ttl }));
    await cache.set("long", 1, { ttl: 3600 });
    await stage.pass(stage.shortMs);
    for (const key of ["short", "many", "loaded"]) await assertAbsent(cache, key);
    assert.equal(await cache.get("long"), 1);
  }),
  rule("set replaces the old ttl and tags", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", 1, { ttl: stage.shortMs / 1000, tags: ["old"] });
    await cache.set("key", 2, { ttl: 3600, tags: ["new"] });
    await stage.pass(stage.shortMs);
    await cache.invalidateTags("old");
    assert.equal(await cache.get("key"), 2);
    assert.deepEqual(await cache.tags("key"), ["new"]);
    await cache.invalidateTags("new");
    await assertAbsent(cache, "key");
  }),
  rule("tags returns an entry's tags, whatever characters they contain", async (stage) => {
    const cache = stage.cache();
    await cache.set("none", 1);
    await cache.set("some", 1, { tags: [...AWKWARD_NAMES, "a b"] });
    assert.deepEqual(await cache.tags("none"), []);
    assert.deepEqual((await cache.tags("some"))?.sort(), [...AWKWARD_NAMES].sort());
    assert.equal(await cache.tags("absent"), undefined);
  }),
];

const batched = [
  rule("getMany returns the values of the keys that are present", async (stage) => {
    const cache = stage.cache();
    await cache.setMany(new Map(AWKWARD_NAMES.map((name, at) => [name, at])));
    const found = await cache.getMany(["absent", ...AWKWARD_NAMES, "also absent", ...AWKWARD_NAMES]);
    assert.deepEqual([...found].sort(), AWKWARD_NAMES.map((name, at) => [name, at]).sort());
    assert.equal((await cache.getMany([])).size, 0);
  }),
  rule("setMany stores all values with the same options", async (stage) => {
    const cache = stage.cache();
    await cache.setMany(
      [
        ["a", 1],
        ["b", { two: 2 }],
        ["a", 3],
      ],
      { ttl: 60, tags: ["batch"] },
    );
    await cache.setMany({});
    assert.deepEqual([await cache.get("a"), await cache.get("b")], [3, { two: 2 }]);
    assert.deepEqual(await cache.tags("b"), ["batch"]);
    await cache.invalidateTags("batch");
    assert.equal((await cache.getMany(["a", "b"])).size, 0);
  }),
  rule("keys of any characters are distinct and come back unchanged", async (stage) => {
    const cache = stage.cache();
    const long = "k".repeat(MAX_KEY_BYTES - 1);
    const names = [...AWKWARD_NAMES, `${long}a`, `${long}b`];
    for (const [at, name] of names.entries()) await cache.set(name, at);
    for (const [at, name] of names.entries()) assert.equal(await cache.get(name), at, JSON.stringify(name));
    assert.equal(await cache.delete("a b"), 1);
    assert.equal(await cache.exists("a_b"), true);
  }),
  rule(
    "a key that is not well-formed Unicode is rejected or stored exactly, never confused with another",
    async (stage) => {
      const cache = stage.cache();
      const stored = new Map<string, string>();
      for (const key of ["\ud800", "\ud801", "\udc00", "a\ud800b", "\ufffd"]) {
        const value = JSON.stringify(key);
        const refused = await cache.set(key, value).then(
          () => undefined,
          (error: unknown) => error,
        );
        if (refused === undefined) stored.set(key, value);
      }
      for (const [key, value] of stored) assert.equal(await cache.get(key), value);
    },
  ),
];

const listing = [
  rule("keys lists the live entries, all or by glob, without the prefix", async (stage) => {
    const cache = stage.cache();
    await cache.setMany({ "user:1": 1, "user:2": 2, "user:*": 3, "post:1": 4 }, { tags: ["all"] });
    await cache.set("gone", 1, { ttl: stage.shortMs / 1000 });
    await cache.set("dead", 1, { tags: ["dead"] });
    await cache.invalidateTags("dead");
    await stage.pass(stage.shortMs);
    assert.deepEqual(await listedKeys(cache), ["post:1", "user:*", "user:1", "user:2"]);
    assert.deepEqual(await listedKeys(cache, "user:?"), ["user:*", "user:1", "user:2"]);
    assert.deepEqual(await listedKeys(cache, "user:\\*"), ["user:*"]);
    assert.deepEqual(await listedKeys(cache, "*:[1]"), ["post:1", "user:1"]);
  }),
  rule("keys lists names of any characters", async (stage) => {
    const cache = stage.cache();
    await cache.setMany(AWKWARD_NAMES.map((name) => [name, 1] as const));
    assert.deepEqual(await listedKeys(cache), [...AWKWARD_NAMES].sort());
  }),
  rule("keys does not list loads that stored nothing", async (stage) => {
    const cache = stage.cache();
    const held = new HeldLoad<undefined>();
    const call = cache.getOrSet("loading", held.load);
    await stage.until(held.started);
    assert.deepEqual(await listedKeys(cache), []);
    held.finish(undefined);
    await stage.until(call);
    assert.deepEqual(await listedKeys(cache), []);
  }),
  rule("getStats with exact counts the live entries of the prefix", async (stage) => {
    const cache = stage.cache();
    await cache.setMany({ a: 1, b: 2, c: 3 }, { tags: ["some"] });
    await cache.set("d", 4);
    await stage.cache({ keyPrefix: `${stage.prefix}-other` }).set("e", 5);
    const stats = await cache.getStats({ exact: true });
    assert.equal(stats.totalKeys, 4);
    assert.ok(stats.totalMemoryBytes > 0);
    await cache.invalidateTags("some");
    assert.equal((await cache.getStats({ exact: true })).totalKeys, 1);
  }),
];

const listingRefused = rule("operations that need a list of keys throw UnsupportedError", async (stage) => {
  const cache = stage.cache();
  await cache.set("key", 1);
  await assert.rejects(listedKeys(cache), UnsupportedError);
  await assert.rejects(cache.invalidatePattern("*"), UnsupportedError);
  await assert.rejects(cache.getStats({ exact: true }), UnsupportedError);
  assert.equal(await cache.get("key"), 1);
});

export const cacheOperations: ContractGroup = {
  name: "cache operations",
  cases: ({ scan }) => [...single, ...batched, ...(scan ? listing : [listingRefused])],
};
