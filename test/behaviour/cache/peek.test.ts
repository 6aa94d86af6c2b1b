// Synchronous reads of what the process itself holds.
import { describe, expect, it } from "vitest";
import { InvalidKeyError } from "../../../src/core/errors.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";
import { memoryCache } from "./memory-cache.ts";

const caches = redisCaches({ nearCache: true });

describe("in memory", () => {
  it("a value is available as soon as it is stored, as a copy, until it expires or is deleted", async () => {
    const { cache, clock } = memoryCache();
    expect(cache.peek("k")).toBeUndefined();
    void cache.set("k", { list: [1] }, { ttl: 5 });
    const value = cache.peek<{ list: number[] }>("k");
    expect(value).toEqual({ list: [1] });
    value?.list.push(2);
    expect(cache.peek("k")).toEqual({ list: [1] });
    await clock.advance(5_000);
    expect(cache.peek("k")).toBeUndefined();
    void cache.set("k", null);
    expect(cache.peek("k")).toBeNull();
    await cache.delete("k");
    expect(cache.peek("k")).toBeUndefined();
  });

  it("peek counts hits, and returns nothing once the cache is disconnected", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    cache.peek("k");
    cache.peek("absent");
    expect(await cache.getStats()).toMatchObject({ totalHits: 1, totalMisses: 0 });
    await cache.disconnect();
    expect(cache.peek("k")).toBeUndefined();
  });

  it("peek rejects an invalid key", () => {
    const { cache } = memoryCache();
    expect(() => cache.peek("")).toThrow(InvalidKeyError);
    expect(() => cache.peek(undefined as unknown as string)).toThrow(/key/);
  });
});

describe("in the near tier", () => {
  it("a value is available once it was read, and gone when another process changes it", async () => {
    const [mine, other] = [caches.open(), caches.open()];
    await other.set("k", "old");
    expect(mine.peek("k")).toBeUndefined();
    await until(async () => (await mine.get("k")) === mine.peek("k"), { what: "it is kept" });
    expect(mine.peek("k")).toBe("old");
    expect(await mine.explain("k")).toMatchObject({
      tier: "near",
      reason: expect.stringMatching(/^fresh for .* in the near tier of this process$/),
    });
    await other.delete("k");
    await until(() => mine.peek("k") === undefined, { what: "the change is known" });
  });

  it("nothing is available without a near tier", async () => {
    const cache = caches.open({ nearCache: false });
    await cache.set("k", 1);
    expect(await cache.get("k")).toBe(1);
    expect(cache.peek("k")).toBeUndefined();
  });
});
