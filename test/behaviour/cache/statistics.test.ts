import { afterEach, describe, expect, it, vi } from "vitest";
import { settle } from "../../../src/testing/manual-clock.ts";
import { memoryCache } from "./memory-cache.ts";

describe("getStats", () => {
  it("an unused cache has zeros, and a hit rate of 0", async () => {
    const { cache } = memoryCache();
    expect(await cache.getStats()).toEqual({
      hitRate: 0,
      totalHits: 0,
      totalMisses: 0,
      totalSets: 0,
      totalDeletes: 0,
      totalInvalidations: 0,
      totalErrors: 0,
      totalEvictions: 0,
      totalKeys: 0,
      totalMemoryBytes: 0,
      memoryUsageMb: 0,
      uptimeSeconds: 0,
      approximate: false,
      scope: "prefix",
    });
  });

  it("counts hits and misses of get, getMany and getOrSet, whether its load succeeds or not", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    await cache.get("k");
    await cache.get("absent");
    await cache.getMany(["k", "absent"]);
    await cache.getOrSet("k", () => 2);
    await cache.getOrSet("loaded", () => 2);
    await cache.getOrSet("failed", () => Promise.reject(new Error("down"))).catch(() => {});
    expect(await cache.getStats()).toMatchObject({ totalHits: 3, totalMisses: 4, hitRate: 3 / 7 });
  });

  it("counts written and deleted keys, and invalidations per call", async () => {
    const { cache } = memoryCache();
    await cache.set("a", 1);
    await cache.setMany({ b: 1, c: 1 });
    await cache.getOrSet("d", () => 1);
    await cache.getOrSet("e", ({ skip }) => {
      skip();
      return 1;
    });
    await cache.delete(["a", "absent"]);
    await cache.invalidateTags(["t", "u"]);
    await cache.invalidatePattern("x*");
    await cache.clear();
    expect(await cache.getStats()).toMatchObject({ totalSets: 4, totalDeletes: 1, totalInvalidations: 3 });
  });

  it("counts every failed call once, whatever the operation", async () => {
    const { cache } = memoryCache();
    const bad = "" as string;
    const calls = [
      cache.get(bad),
      cache.getMany([bad]),
      cache.set(bad, 1),
      cache.setMany([[bad, 1]]),
      cache.getOrSet(bad, () => 1),
      cache.delete(bad),
      cache.exists(bad),
      cache.ttl(bad),
      cache.tags(bad),
      cache.invalidateTags([bad]),
      cache.invalidatePattern(bad),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "KEY_INVALID" });
    expect((await cache.getStats()).totalErrors).toBe(calls.length);
    const { errorRate, totalOperations, byOperation } = cache.getComprehensiveMetrics();
    expect(totalOperations).toBe(calls.length + 1);
    expect(errorRate).toBeCloseTo(calls.length / (calls.length + 1));
    const counted = Object.entries(byOperation).filter(([name]) => name !== "getStats");
    expect(counted).toHaveLength(calls.length);
    for (const [, { count, errors }] of counted) expect([count, errors]).toEqual([1, 1]);
  });

  it("a load's own error is not an error of the cache", async () => {
    const { cache } = memoryCache();
    await cache.getOrSet("k", () => Promise.reject(new Error("down"))).catch(() => {});
    expect((await cache.getStats()).totalErrors).toBe(0);
  });

  it("a small store is counted exactly: nothing expired, dead or of another namespace", async () => {
    const { cache, clock } = memoryCache();
    await cache.set("brief", 1, { ttl: 1 });
    await cache.set("dead", 1, { tags: ["t"] });
    await cache.setMany({ a: "x".repeat(1_000), b: 1 });
    await cache.namespace("n").set("c", 1);
    await cache.invalidateTags("t");
    await clock.advance(1_000);
    const stats = await cache.getStats();
    expect(stats).toMatchObject({ totalKeys: 2, approximate: false });
    expect(stats.totalMemoryBytes).toBeGreaterThan(1_000);
    expect(stats.totalMemoryBytes).toBeLessThan(2_000);
    expect(stats.memoryUsageMb).toBe(stats.totalMemoryBytes / 1024 / 1024);
    await cache.clear();
    expect(await cache.getStats()).toMatchObject({ totalKeys: 0, totalMemoryBytes: 0 });
  });

  it("an exact count stops when its signal aborts, and reports that it did not finish", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 5_000 }, (_, n) => [`k${n}`, n] as const));
    const stop = new AbortController();
    const counting = cache.getStats({ exact: true, signal: stop.signal });
    const reason = new Error("enough");
    stop.abort(reason);
    await expect(counting).rejects.toBe(reason);
    await expect(cache.getStats({ signal: 5 as never })).rejects.toMatchObject({ code: "ARGUMENT_INVALID" });
  });

  it("a large store is estimated and marked so; exact counts, and yields to other tasks meanwhile", async () => {
    const { cache } = memoryCache();
    await cache.setMany(Array.from({ length: 5_000 }, (_, n) => [`k${n}`, "x".repeat(100)] as const));
    const estimate = await cache.getStats();
    expect(estimate).toMatchObject({ totalKeys: 5_000, approximate: true });
    let others = 0;
    const exact = cache.getStats({ exact: true });
    void settle().then(() => others++);
    expect(await exact).toMatchObject({ totalKeys: 5_000, approximate: false });
    expect(others).toBe(1);
    expect((await exact).totalMemoryBytes / estimate.totalMemoryBytes).toBeCloseTo(1, 1);
  });

  it("uptime is the age of the cache object", async () => {
    const { cache, clock } = memoryCache();
    await clock.advance(90_500);
    expect((await cache.getStats()).uptimeSeconds).toBe(90.5);
  });
});

describe("getComprehensiveMetrics", () => {
  it("counts every operation exactly, even if only some are timed", async () => {
    const { cache } = memoryCache();
    for (let n = 0; n < 300; n++) {
      await cache.set("k", n);
      await cache.get("k");
      await cache.get("absent");
      await cache.getOrSet("k", () => 1);
    }
    for await (const _ of cache.keys());
    const { byOperation, totalOperations, hitRate } = cache.getComprehensiveMetrics();
    expect(byOperation.set?.count).toBe(300);
    // A getOrSet hit is a get to the store.
    expect(byOperation.get?.count).toBe(900);
    expect(byOperation.keys?.count).toBe(1);
    expect(totalOperations).toBe(1_201);
    expect(hitRate).toBeCloseTo(2 / 3);
  });

  it("times every operation of any regular pattern of calls", async () => {
    const { cache, clock } = memoryCache();
    // Reading the time advances it, so that everything timed takes a while.
    let reading = clock.now();
    vi.spyOn(clock, "now").mockImplementation(() => (reading += 0.5));
    for (let n = 0; n < 200; n++) {
      await cache.set("k", n);
      await cache.get("k");
    }
    const { byOperation } = cache.getComprehensiveMetrics();
    expect(byOperation.set?.p50).toBeGreaterThan(0);
    expect(byOperation.get?.p50).toBeGreaterThan(0);
  });

  it("the very first call is timed, so that figures are never empty", async () => {
    const { cache, clock } = memoryCache();
    let reading = clock.now();
    vi.spyOn(clock, "now").mockImplementation(() => (reading += 0.5));
    await cache.get("k");
    const { avgResponseTime, p50, p95, p99 } = cache.getComprehensiveMetrics();
    for (const figure of [avgResponseTime, p50, p95, p99]) expect(figure).toBeGreaterThan(0);
  });

  it("a load's time is the getOrSet's time", async () => {
    const { cache, clock } = memoryCache();
    const call = cache.getOrSet("k", () => new Promise((resolve) => clock.after(2_000, () => resolve(1))));
    await clock.advance(2_000);
    await call;
    const { byOperation } = cache.getComprehensiveMetrics();
    expect(byOperation.getOrSet).toMatchObject({ count: 1, avgResponseTime: 2 });
  });

  it("reports how full the store is", async () => {
    const { cache } = memoryCache({}, { maxEntries: 8 });
    await cache.setMany({ a: 1, b: 2 });
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0.25);
    const bytes = memoryCache({}, { maxBytes: 1_000 }).cache;
    await bytes.set("a", "x".repeat(400));
    expect(bytes.getComprehensiveMetrics().memoryUsage).toBeGreaterThan(0.4);
  });

  it("has the figures of a store without connections", () => {
    const { cache } = memoryCache();
    expect(cache.getComprehensiveMetrics()).toMatchObject({
      connectionFailures: 0,
      circuitBreakerOpen: false,
      poolUtilization: 0,
      evictionRate: 0,
    });
  });
});

describe("startMetricsCollection", () => {
  afterEach(() => vi.restoreAllMocks());

  it("makes the rates those of the last minute", async () => {
    const { cache, clock } = memoryCache();
    cache.startMetricsCollection();
    cache.startMetricsCollection();
    for (let n = 0; n < 600; n++) await cache.get("k");
    await clock.advance(60_000);
    expect(cache.getComprehensiveMetrics().operationsPerSecond).toBe(10);
    await clock.advance(120_000);
    expect(cache.getComprehensiveMetrics().operationsPerSecond).toBe(0);
  });

  it("ends with disconnect and leaves no timer behind", async () => {
    const { cache, clock } = memoryCache();
    cache.startMetricsCollection();
    cache.namespace("n").startMetricsCollection();
    expect(clock.pending).toBe(2);
    await cache.disconnect();
    expect(clock.pending).toBe(0);
  });

  it("does nothing but warn when enableMetrics is false", () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const { cache, clock } = memoryCache({ enableMetrics: false });
    cache.startMetricsCollection();
    expect(clock.pending).toBe(0);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("enableMetrics is false"), "XCacheWarning");
  });
});
