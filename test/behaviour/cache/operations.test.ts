import { getHeapStatistics } from "node:v8";
import { describe, expect, it, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { ConfigError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { listed, memoryCache } from "./memory-cache.ts";

describe("get and set", () => {
  it("an absent key is undefined, and anything else is a stored value", async () => {
    const { cache } = memoryCache();
    expect(await cache.get("k")).toBeUndefined();
    for (const value of [null, 0, "", false, Number.NaN, [], {}]) {
      await cache.set("k", value);
      expect(await cache.get("k")).toEqual(value);
      expect(await cache.exists("k")).toBe(true);
    }
  });

  it("set replaces the value, its ttl and its tags", async () => {
    const { cache } = memoryCache();
    await cache.set("k", "old", { ttl: 10, tags: ["a", "b"] });
    await cache.set("k", "new", { ttl: 20 });
    expect(await cache.get("k")).toBe("new");
    expect(await cache.ttl("k")).toBe(20);
    expect(await cache.tags("k")).toEqual([]);
    await cache.invalidateTags("a");
    expect(await cache.get("k")).toBe("new");
  });

  it("options can be frozen, without a prototype, or made of getters", async () => {
    const { cache } = memoryCache();
    const withGetters = {
      get ttl() {
        return 30;
      },
      get tags() {
        return ["t"];
      },
    };
    const bare = Object.assign(Object.create(null), { ttl: 30, tags: ["t"] });
    const frozen = Object.freeze({ ttl: 30, tags: Object.freeze(["t"]) });
    for (const options of [withGetters, bare, frozen]) {
      await cache.set("k", 1, options);
      expect([await cache.ttl("k"), await cache.tags("k")]).toEqual([30, ["t"]]);
    }
  });
});

describe("getMany and setMany", () => {
  it("getMany returns only the present ones, each once, in the requested order", async () => {
    const { cache } = memoryCache();
    await cache.setMany({ a: 1, b: null, c: 3 });
    const found = await cache.getMany(["c", "absent", "a", "c", "b"]);
    expect([...found]).toEqual([
      ["c", 3],
      ["a", 1],
      ["b", null],
    ]);
    expect((await cache.getMany([])).size).toBe(0);
  });

  it("setMany accepts a Map, a list of pairs, an object or a generator", async () => {
    const { cache } = memoryCache();
    await cache.setMany(new Map([["map", 1]]));
    await cache.setMany([["list", 2] as const]);
    await cache.setMany({ object: 3 });
    await cache.setMany(
      (function* () {
        yield ["generator", 4] as const;
      })(),
    );
    await cache.setMany({});
    const found = await cache.getMany(["map", "list", "object", "generator"]);
    expect([...found.values()]).toEqual([1, 2, 3, 4]);
  });

  it("setMany stores all under the same terms; the last value of a repeated key wins", async () => {
    const { cache } = memoryCache();
    await cache.setMany(
      [
        ["a", 1],
        ["b", 2],
        ["a", 3],
      ],
      { ttl: 7, tags: ["t"] },
    );
    expect(await cache.get("a")).toBe(3);
    for (const key of ["a", "b"]) {
      expect([await cache.ttl(key), await cache.tags(key)]).toEqual([7, ["t"]]);
    }
  });

  it("setMany stores all or none", async () => {
    const { cache } = memoryCache();
    await cache.set("a", "old");
    const bad = [
      ["a", "new"],
      ["b", { run: () => 1 }],
    ] as const;
    await expect(cache.setMany(bad)).rejects.toMatchObject({ code: "VALUE_UNSUPPORTED", path: "$.run" });
    expect(await cache.get("a")).toBe("old");
    expect(await cache.exists("b")).toBe(false);
  });
});

describe("exists and delete", () => {
  it("delete returns how many were present; a repeated key counts once, an expired one not at all", async () => {
    const { cache, clock } = memoryCache();
    await cache.setMany({ a: 1, b: 2, c: 3 });
    await cache.set("brief", 1, { ttl: 1 });
    await cache.set("dead", 1, { tags: ["t"] });
    await cache.invalidateTags("t");
    await clock.advance(1_000);
    expect(await cache.delete("a")).toBe(1);
    expect(await cache.delete("a")).toBe(0);
    expect(await cache.delete(["b", "b", "c", "absent", "brief", "dead"])).toBe(2);
    expect(await cache.delete([])).toBe(0);
    expect(await listed(cache.keys())).toEqual([]);
  });

  it("exists does not count as a lookup", async () => {
    const { cache } = memoryCache();
    await cache.exists("k");
    await cache.set("k", 1);
    await cache.exists("k");
    expect(await cache.getStats()).toMatchObject({ totalHits: 0, totalMisses: 0 });
  });
});

describe("getOrSet", () => {
  it("does not run the load while a value is stored, null included", async () => {
    const { cache } = memoryCache();
    const load = vi.fn(() => "loaded");
    await cache.setMany({ a: "stored", b: null });
    expect(await cache.getOrSet("a", load)).toBe("stored");
    expect(await cache.getOrSet<string | null>("b", load)).toBeNull();
    expect(load).not.toHaveBeenCalled();
  });

  it("stores what the load returns under the options' terms", async () => {
    const { cache } = memoryCache();
    expect(await cache.getOrSet("k", async () => ({ n: 1 }), { ttl: 9, tags: ["t"] })).toEqual({ n: 1 });
    expect([await cache.get("k"), await cache.ttl("k"), await cache.tags("k")]).toEqual([{ n: 1 }, 9, ["t"]]);
  });
});

describe("clear", () => {
  it("empties the cache immediately, however many entries it holds, and it can be filled again", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 500 }, (_, n) => [`k${n}`, n] as const));
    await cache.clear();
    expect(await listed(cache.keys())).toEqual([]);
    expect(await cache.get("k1")).toBeUndefined();
    await cache.set("k1", "again");
    expect(await listed(cache.keys())).toEqual(["k1"]);
  });
});

describe("the bound of the store", () => {
  it("maxEntries holds, and an evicted key is absent like any other", async () => {
    const { cache } = memoryCache({}, { maxEntries: 10 });
    const gone: string[] = [];
    cache.on("evict", ({ key }) => gone.push(key));
    for (let n = 0; n < 100; n++) await cache.set(`k${n}`, n);
    const left = await listed(cache.keys());
    expect(left).toHaveLength(10);
    expect(gone).toHaveLength(90);
    expect(await cache.get(gone[0] as string)).toBeUndefined();
    expect((await cache.getStats()).totalEvictions).toBe(90);
  });

  it("the memory store holds at most a quarter of the heap and 256 MB, unless it has another bound in bytes", async () => {
    const most = Math.min(256 * 1024 * 1024, Math.floor(getHeapStatistics().heap_size_limit / 4));
    expect(new MemoryBackend().maxBytes).toBe(most);
    expect(new MemoryBackend({ values: "shared" }).maxBytes).toBe(most);
    expect(new MemoryBackend({ maxBytes: 1_000 }).maxBytes).toBe(1_000);
    expect(new MemoryBackend({ maxBytes: Number.POSITIVE_INFINITY }).maxBytes).toBe(Number.POSITIVE_INFINITY);
    expect(new MemoryBackend({ maxEntries: 1_000 }).maxBytes).toBe(most);
    await using cache = new XCache({ kvUrl: "memory://?max_entries=100000" });
    const megabyte = "x".repeat(2 ** 20);
    const pages = most / 2 ** 20 + 20;
    for (let page = 0; page < pages; page++) await cache.set(`page:${page}`, megabyte);
    const kept = await cache.getMany(Array.from({ length: pages }, (_, page) => `page:${page}`));
    expect(kept.size).toBeLessThan(most / 2 ** 20);
    expect(kept.size).toBeGreaterThan(most / 2 ** 20 - 20);
  });

  it("a value larger than maxBytes is rejected and the old one stays", async () => {
    const { cache } = memoryCache({}, { maxBytes: 10_000 });
    await cache.set("k", "old");
    await expect(cache.set("k", "x".repeat(20_000))).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(await cache.get("k")).toBe("old");
  });
});

describe("fuzzySearch", () => {
  it("is rejected unless enableFuzzy is set, with an error that shows how to set it", async () => {
    const { cache } = memoryCache();
    const refused = await cache.fuzzySearch("user").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigError);
    expect(refused).toMatchObject({ code: "FEATURE_DISABLED", operation: "fuzzySearch" });
    expect((refused as ConfigError).hint).toContain("enableFuzzy: true");
  });

  it("finds live keys of its own namespace, best first", async () => {
    const { cache } = memoryCache({ enableFuzzy: true });
    await cache.setMany({ "user:alice": 1, "user:alicia": 2, "order:17": 3 });
    await cache.set("user:alibi", 4, { tags: ["dead"] });
    await cache.invalidateTags("dead");
    await cache.namespace("other").set("user:alice", 5);
    const found = await cache.fuzzySearch("alice");
    expect(found.map(({ key, score }) => [key, score])).toEqual([
      ["user:alice", 100],
      ["user:alicia", 80],
    ]);
    expect(await cache.fuzzySearch("alice", { threshold: 90, limit: 5 })).toHaveLength(1);
  });
});
