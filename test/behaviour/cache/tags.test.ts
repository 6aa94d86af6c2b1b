import { describe, expect, it } from "vitest";
import { listed, memoryCache } from "./memory-cache.ts";

describe("tags", () => {
  it("an entry has the tags it was stored with, each once, in their order", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1, { tags: ["b", "a", "b"] });
    await cache.set("none", 1);
    expect(await cache.tags("k")).toEqual(["b", "a"]);
    expect(await cache.tags("none")).toEqual([]);
    expect(await cache.tags("absent")).toBeUndefined();
  });

  it("invalidating one tag of several makes an entry absent to every operation", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1, { tags: ["a", "b"] });
    await cache.invalidateTags("b");
    expect(await cache.get("k")).toBeUndefined();
    expect(await cache.exists("k")).toBe(false);
    expect(await cache.ttl("k")).toBeUndefined();
    expect(await cache.tags("k")).toBeUndefined();
    expect(await listed(cache.keys())).toEqual([]);
    expect(await cache.delete("k")).toBe(0);
    expect(await cache.getOrSet("k", () => 2)).toBe(2);
  });

  it("invalidates a list, and leaves entries without any of its tags alone", async () => {
    const { cache } = memoryCache();
    await cache.set("a", 1, { tags: ["a"] });
    await cache.set("b", 1, { tags: ["b", "x"] });
    await cache.set("c", 1, { tags: ["c", "x"] });
    await cache.set("none", 1);
    await cache.invalidateTags(["a", "b", "unused"]);
    expect((await listed(cache.keys())).sort()).toEqual(["c", "none"]);
  });

  it("an empty list invalidates nothing and counts as nothing", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1, { tags: ["a"] });
    await cache.invalidateTags([]);
    expect(await cache.exists("k")).toBe(true);
    expect((await cache.getStats()).totalInvalidations).toBe(0);
  });

  it("an entry stored after the invalidation is not affected by it", async () => {
    const { cache } = memoryCache();
    await cache.invalidateTags("a");
    await cache.set("k", 1, { tags: ["a"] });
    expect(await cache.get("k")).toBe(1);
    await cache.invalidateTags("a");
    await cache.set("k", 2, { tags: ["a"] });
    expect(await cache.get("k")).toBe(2);
  });

  it("any string is a tag, and no two are the same", async () => {
    const { cache } = memoryCache();
    const tags = ["__proto__", "constructor", "a b", "a_b", "a:b", "*", "\u0000", "ä", "😀", " "];
    for (const [at, tag] of tags.entries()) await cache.set(`k${at}`, tag, { tags: [tag] });
    for (const [at, tag] of tags.entries()) {
      await cache.invalidateTags(tag);
      expect(await cache.exists(`k${at}`)).toBe(false);
      expect(await listed(cache.keys())).toHaveLength(tags.length - at - 1);
    }
  });

  it("invalidation costs one step per tag, not per entry: no entry is examined", async () => {
    const { cache, clock } = memoryCache();
    await cache.setMany(
      Array.from({ length: 1_000 }, (_, n) => [`k${n}`, n] as const),
      { tags: ["t"] },
    );
    const full = cache.getComprehensiveMetrics().memoryUsage;
    await cache.invalidateTags("t");
    // They are dead but still present; the sweep reclaims them later.
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(full);
    expect(await listed(cache.keys())).toEqual([]);
    await clock.advance(60_000);
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0);
  });
});
