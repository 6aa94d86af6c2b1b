import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { listed, memoryCache } from "./memory-cache.ts";

const AWKWARD = [
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "toString",
  "a b",
  "a_b",
  "a:b",
  "a/b",
  "a%3ab",
  "xcache:a",
  "xcache!t:a",
  "!n",
  "!g:1",
  " ",
  "\u0000",
  "\r\n",
  "é",
  "e\u0301",
  "😀",
  "*",
  "[a]",
  "0",
  "k".repeat(64 * 1024),
  "é".repeat(32 * 1024),
];

describe("keys", () => {
  it("distinct keys never collide, whatever they contain", async () => {
    const { cache } = memoryCache();
    for (const [at, key] of AWKWARD.entries()) await cache.set(key, at);
    for (const [at, key] of AWKWARD.entries()) expect(await cache.get(key)).toBe(at);
    expect((await listed(cache.keys())).sort()).toEqual([...AWKWARD].sort());
    for (const [at, key] of AWKWARD.entries()) {
      expect(await cache.delete(key)).toBe(1);
      expect(await listed(cache.keys())).toHaveLength(AWKWARD.length - at - 1);
    }
  });

  it("any set of keys behaves like a Map", async () => {
    const { cache } = memoryCache();
    const key = fc.string({
      minLength: 1,
      maxLength: 3,
      unit: fc.constantFrom("a", "b", ":", "!", " ", "%", "é"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(key, fc.integer())), async (entries) => {
        await cache.clear();
        const model = new Map(entries);
        await cache.setMany(entries);
        expect(await cache.getMany([...model.keys()])).toEqual(model);
        expect((await listed(cache.keys())).sort()).toEqual([...model.keys()].sort());
      }),
      { numRuns: 100 },
    );
  });

  it("no key reaches the library's own records: only stored keys are listed", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1, { tags: ["t"] });
    await cache.namespace("n").set("k", 2, { tags: ["t"] });
    for (const own of ["xcache!t:t", "!t:t", "xcache!n", "xcache/n:k", "/n:k"]) {
      expect(await cache.get(own)).toBeUndefined();
      expect(await cache.delete(own)).toBe(0);
    }
    expect(await listed(cache.keys())).toEqual(["k"]);
  });
});

describe("keys(pattern)", () => {
  it("lists live entries that match a glob", async () => {
    const { cache, clock } = memoryCache();
    await cache.setMany({ "user:1": 1, "user:22": 1, "user:*": 1, "post:1": 1 });
    await cache.set("user:gone", 1, { ttl: 1 });
    await cache.set("user:dead", 1, { tags: ["t"] });
    await cache.invalidateTags("t");
    await clock.advance(1_000);
    const matching = async (pattern?: string): Promise<string[]> =>
      (await listed(cache.keys(pattern))).sort();
    expect(await matching()).toEqual(["post:1", "user:*", "user:1", "user:22"]);
    expect(await matching("user:*")).toEqual(["user:*", "user:1", "user:22"]);
    expect(await matching("user:?")).toEqual(["user:*", "user:1"]);
    expect(await matching("user:\\*")).toEqual(["user:*"]);
    expect(await matching("*:[12]")).toEqual(["post:1", "user:1"]);
    expect(await matching("nothing")).toEqual([]);
  });

  it("yields incrementally: deleted keys are not listed, added keys do not prolong it", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 2_500 }, (_, n) => [`k${n}`, n] as const));
    const seen: string[] = [];
    for await (const key of cache.keys()) {
      if (seen.length === 0) await cache.delete("k2499");
      seen.push(key);
      await cache.set(`new${seen.length}`, 1);
      expect(seen.length).toBeLessThan(10_000);
    }
    expect(seen).not.toContain("k2499");
    expect(seen.filter((key) => key.startsWith("k"))).toHaveLength(2_499);
  });

  it("a consumer may stop early, and a signal stops it", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 3_000 }, (_, n) => [`k${n}`, n] as const));
    for await (const _ of cache.keys()) break;
    const stop = new AbortController();
    let seen = 0;
    for await (const _ of cache.keys("*", { signal: stop.signal })) if (++seen === 10) stop.abort();
    expect(seen).toBeLessThanOrEqual(1_000);
    expect(await listed(cache.keys("*", { signal: AbortSignal.abort() }))).toEqual([]);
  });

  it("yields to other tasks while it scans a large store", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 5_000 }, (_, n) => [`k${n}`, n] as const));
    let turns = 0;
    let counting = true;
    const count = (): void => {
      turns++;
      if (counting) setImmediate(count);
    };
    setImmediate(count);
    await listed(cache.keys());
    counting = false;
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});

describe("invalidatePattern", () => {
  it("removes matching entries and returns how many were live", async () => {
    const { cache, clock } = memoryCache();
    await cache.setMany({ "user:1": 1, "user:2": 1, "post:1": 1 });
    await cache.set("user:gone", 1, { ttl: 1 });
    await clock.advance(1_000);
    expect(await cache.invalidatePattern("user:*")).toBe(2);
    expect(await cache.invalidatePattern("user:*")).toBe(0);
    expect(await listed(cache.keys())).toEqual(["post:1"]);
  });

  it("works on more entries than one batch, and leaves those written after it", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 3_500 }, (_, n) => [`k${n}`, n] as const));
    expect(await cache.invalidatePattern("k*")).toBe(3_500);
    await cache.set("k1", 1);
    expect(await listed(cache.keys())).toEqual(["k1"]);
  });

  it("stops when its signal aborts, and reports that it did not finish", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    const reason = new Error("enough");
    await expect(cache.invalidatePattern("*", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(await cache.exists("k")).toBe(true);
  });
});
