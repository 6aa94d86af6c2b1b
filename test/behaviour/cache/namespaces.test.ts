import { describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { listed, memoryCache } from "./memory-cache.ts";

describe("a namespace", () => {
  it("has its own keys", async () => {
    const { cache } = memoryCache();
    const [a, b] = [cache.namespace("a"), cache.namespace("b")];
    await cache.set("k", "root");
    await a.set("k", "a");
    await b.set("k", "b");
    expect(await Promise.all([cache, a, b].map((each) => each.get("k")))).toEqual(["root", "a", "b"]);
    expect(await a.delete("k")).toBe(1);
    expect(await Promise.all([cache, a, b].map((each) => each.get("k")))).toEqual(["root", undefined, "b"]);
    expect(await listed(b.keys())).toEqual(["k"]);
    expect(await cache.invalidatePattern("*")).toBe(1);
    expect(await b.get("k")).toBe("b");
  });

  it("is not reached by any spelling of a key or of another name", async () => {
    const { cache } = memoryCache();
    await cache.namespace("a").namespace("b").set("k", 1);
    for (const other of ["a/b", "a:b", "a%2fb", "a", "b"]) {
      expect(await cache.namespace(other).get("k")).toBeUndefined();
    }
    for (const key of ["a/b:k", "a:k", "xcache/a/b:k", "../k"]) expect(await cache.get(key)).toBeUndefined();
    expect(await listed(cache.keys())).toEqual([]);
  });

  it("clear empties it and its children, not its parent or siblings", async () => {
    const { cache } = memoryCache();
    const a = cache.namespace("a");
    const below = a.namespace("below");
    const b = cache.namespace("b");
    for (const each of [cache, a, below, b]) await each.set("k", 1);
    await a.clear();
    expect(await Promise.all([cache, a, below, b].map((each) => each.exists("k")))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    await below.set("k", 2);
    await cache.clear();
    expect(await Promise.all([cache, a, below, b].map((each) => each.exists("k")))).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  it("has its own tags: neither parent nor child invalidates the other's", async () => {
    const { cache } = memoryCache();
    const child = cache.namespace("child");
    await cache.set("k", 1, { tags: ["t"] });
    await child.set("k", 1, { tags: ["t"] });
    await child.invalidateTags("t");
    expect([await cache.exists("k"), await child.exists("k")]).toEqual([true, false]);
    await child.set("k", 1, { tags: ["t"] });
    await cache.invalidateTags("t");
    expect([await cache.exists("k"), await child.exists("k")]).toEqual([false, true]);
  });

  it("is the same object for the same name, and any name is just a name", async () => {
    const { cache } = memoryCache();
    expect(cache.namespace("a")).toBe(cache.namespace("a"));
    expect(cache.namespace("a")).not.toBe(cache.namespace("b"));
    for (const name of ["__proto__", "constructor", " ", "a:b!c/d%e", "é"]) {
      const child = cache.namespace(name);
      expect(child).toBeInstanceOf(XCache);
      await child.set("k", name);
      expect(await child.get("k")).toBe(name);
    }
  });

  it("has its own statistics, listeners and metrics", async () => {
    const { cache } = memoryCache();
    const child = cache.namespace("child");
    const heard: string[] = [];
    cache.on("set", ({ key }) => heard.push(`root ${key}`));
    child.on("set", ({ key }) => heard.push(`child ${key}`));
    await cache.set("a", 1);
    await child.set("b", 1);
    expect(heard).toEqual(["root a", "child b"]);
    expect(await child.getStats()).toMatchObject({ totalSets: 1, totalKeys: 1 });
    expect(await cache.getStats()).toMatchObject({ totalSets: 1, totalKeys: 1 });
  });

  it("shares the configured defaults", async () => {
    const { cache } = memoryCache({ defaultTtl: 5 });
    await cache.namespace("child").set("k", 1);
    expect(await cache.namespace("child").ttl("k")).toBe(5);
  });

  it("is notified only of its own evictions", async () => {
    const { cache } = memoryCache({}, { maxEntries: 4 });
    const child = cache.namespace("child");
    const gone = { root: 0, child: 0 };
    cache.on("evict", () => gone.root++);
    child.on("evict", () => gone.child++);
    for (let n = 0; n < 20; n++) await child.set(`k${n}`, n);
    expect(gone).toEqual({ root: 0, child: 16 });
  });
});

describe("caches on one backend object", () => {
  it("share entries under one prefix and nothing under different ones", async () => {
    const backend = new MemoryBackend();
    const clock = new ManualClock();
    const open = (keyPrefix: string): XCache => cacheWithClock({ backend, keyPrefix }, clock);
    const [one, same, other] = [open("a"), open("a"), open("b")];
    await one.set("k", 1, { tags: ["t"] });
    await one.namespace("n").set("k", 2);
    expect([await same.get("k"), await other.get("k")]).toEqual([1, undefined]);
    expect(await same.namespace("n").get("k")).toBe(2);
    await same.invalidateTags("t");
    expect(await one.get("k")).toBeUndefined();
    await other.set("k", 3);
    await one.clear();
    expect(await other.get("k")).toBe(3);
    await Promise.all([one, same, other].map((cache) => cache.disconnect()));
  });

  it("share the load of a key, so that it runs once per process", async () => {
    const backend = new MemoryBackend();
    const clock = new ManualClock();
    const [one, same] = [cacheWithClock({ backend }, clock), cacheWithClock({ backend }, clock)];
    let runs = 0;
    const load = async (): Promise<number> => ++runs;
    const values = await Promise.all([
      one.getOrSet("k", load),
      same.getOrSet("k", load),
      one.getOrSet("k", load),
    ]);
    expect(values).toEqual([1, 1, 1]);
    expect(runs).toBe(1);
    await Promise.all([one.disconnect(), same.disconnect()]);
  });

  it("continue when another of them disconnects", async () => {
    const backend = new MemoryBackend();
    const clock = new ManualClock();
    const [one, other] = [cacheWithClock({ backend }, clock), cacheWithClock({ backend }, clock)];
    await other.setMany(
      Array.from({ length: 1_000 }, (_, n) => [`k${n}`, n] as const),
      { ttl: 1 },
    );
    await one.disconnect();
    expect(await other.get("k1")).toBe(1);
    await clock.advance(60_000);
    expect(other.getComprehensiveMetrics().memoryUsage).toBe(0);
    await other.disconnect();
    expect(clock.pending).toBe(0);
  });
});
