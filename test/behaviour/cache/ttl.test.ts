import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { memoryCache } from "./memory-cache.ts";

describe("ttl", () => {
  it("an entry lives for its ttl and not a millisecond longer", async () => {
    const { cache, clock } = memoryCache();
    await cache.set("k", 1, { ttl: 1.5 });
    await clock.advance(1_499);
    expect(await cache.get("k")).toBe(1);
    await clock.advance(1);
    expect(await cache.get("k")).toBeUndefined();
    expect(await cache.exists("k")).toBe(false);
    expect(await cache.ttl("k")).toBeUndefined();
    expect(await cache.tags("k")).toBeUndefined();
    expect((await cache.getMany(["k"])).size).toBe(0);
  });

  it("any ttl from a millisecond up is exact to the millisecond, rounded down", async () => {
    const { cache } = memoryCache();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 40 }), async (ms) => {
        await cache.set("k", 1, { ttl: ms / 1000 });
        expect(await cache.ttl("k")).toBe(ms / 1000);
        await cache.set("k", 1, { ttl: (ms + 0.9) / 1000 });
        expect(await cache.ttl("k")).toBe(ms / 1000);
      }),
      { numRuns: 200 },
    );
  });

  it("the default is 300 s, or defaultTtl", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    expect(await cache.ttl("k")).toBe(300);
    const other = memoryCache({ defaultTtl: 0.25 }).cache;
    await other.set("k", 1, {});
    await other.setMany({ m: 1 });
    await other.getOrSet("g", () => 1);
    expect(await Promise.all(["k", "m", "g"].map((key) => other.ttl(key)))).toEqual([0.25, 0.25, 0.25]);
  });

  it("Infinity never expires", async () => {
    const { cache, clock } = memoryCache();
    await cache.set("k", 1, { ttl: Number.POSITIVE_INFINITY });
    await clock.jump(1_000 * 3600 * 24 * 365 * 1_000);
    expect(await cache.get("k")).toBe(1);
    expect(await cache.ttl("k")).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([2 ** 31 / 1000, 2 ** 33, 1e12, Number.MAX_VALUE])(
    "a ttl of %d s does not end early",
    async (ttl) => {
      const { cache, clock } = memoryCache();
      await cache.set("k", 1, { ttl });
      await clock.jump(2 ** 31 - 1);
      expect(await cache.get("k")).toBe(1);
    },
  );

  it("ttl() returns what is left, and undefined for an absent key", async () => {
    const { cache, clock } = memoryCache();
    await cache.set("k", 1, { ttl: 10 });
    await clock.advance(2_500);
    expect(await cache.ttl("k")).toBe(7.5);
    expect(await cache.ttl("absent")).toBeUndefined();
  });

  it("ttl() is never negative, however little is left", async () => {
    const { cache, clock } = memoryCache();
    let reading = clock.now();
    vi.spyOn(clock, "now").mockImplementation(() => (reading += 0.4));
    for (let n = 0; n < 50; n++) {
      await cache.set("k", 1, { ttl: 0.002 });
      for (let left = await cache.ttl("k"); left !== undefined; left = await cache.ttl("k")) {
        expect(left).toBeGreaterThanOrEqual(0);
      }
      reading += n / 100;
    }
  });

  it("reading does not extend a lifetime, writing starts a new one", async () => {
    const { cache, clock } = memoryCache();
    await cache.set("k", 1, { ttl: 10 });
    await clock.advance(6_000);
    await cache.get("k");
    expect(await cache.ttl("k")).toBe(4);
    await cache.set("k", 2, { ttl: 10 });
    expect(await cache.ttl("k")).toBe(10);
  });

  it("an expired entry is never served, however long the store was left alone", async () => {
    const { cache, clock } = memoryCache();
    await cache.setMany(
      Array.from({ length: 100 }, (_, n) => [`k${n}`, n] as const),
      { ttl: 60 },
    );
    await clock.jump(3_600_000);
    expect((await cache.getMany(Array.from({ length: 100 }, (_, n) => `k${n}`))).size).toBe(0);
  });

  it("expired entries are reclaimed without being read", async () => {
    const { cache, clock } = memoryCache();
    await cache.setMany(
      Array.from({ length: 2_000 }, (_, n) => [`k${n}`, n] as const),
      { ttl: 1 },
    );
    await clock.advance(60_000);
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0);
  });
});

describe("ttlJitter", () => {
  it("only ever shortens a default ttl, by up to its fraction", async () => {
    const { cache } = memoryCache({ defaultTtl: 100, ttlJitter: 0.2 });
    const lives: number[] = [];
    for (let n = 0; n < 200; n++) {
      await cache.set("k", n);
      lives.push((await cache.ttl("k")) as number);
    }
    expect(Math.max(...lives)).toBeLessThanOrEqual(100);
    expect(Math.min(...lives)).toBeGreaterThanOrEqual(80);
    expect(new Set(lives).size).toBeGreaterThan(100);
  });

  it("leaves an explicit ttl exact, that of a load included", async () => {
    const { cache } = memoryCache({ defaultTtl: 100, ttlJitter: 0.9 });
    await cache.set("k", 1, { ttl: 50 });
    await cache.getOrSet("o", () => 1, { ttl: 50 });
    await cache.getOrSet("l", ({ setTtl }) => {
      setTtl(50);
      return 1;
    });
    expect(await Promise.all(["k", "o", "l"].map((key) => cache.ttl(key)))).toEqual([50, 50, 50]);
  });
});
