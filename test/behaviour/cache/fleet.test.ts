// getStats({ fleet: true }): what all processes counted, minute by minute, from the store they share.
import { describe, expect, expectTypeOf, onTestFinished, test } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import type { CacheStats, FleetStats } from "../../../src/core/stats.ts";
import { ChaosBackend, ManualClock } from "../../../src/testing/index.ts";
import { cacheWithClock } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";
import { listed, memoryCache } from "./memory-cache.ts";

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 1, 12);

/** Processes over one store, in the first second of a minute. */
class Fleet {
  readonly clock = new ManualClock(START);
  readonly store = new ReferenceStore(this.clock);
  readonly backends: ChaosBackend[] = [];

  process(config: CacheConfig = {}): XCache {
    const backend = new ChaosBackend(this.store.client());
    this.backends.push(backend);
    const cache = cacheWithClock({ backend, ...config }, this.clock);
    onTestFinished(() => cache.disconnect());
    return cache;
  }

  rows(): string[] {
    return this.store.keys().filter((key) => key.includes("minute:"));
  }
}

async function use(cache: XCache, hits: number, misses: number): Promise<void> {
  await cache.set("k", 1);
  for (let hit = 0; hit < hits; hit++) await cache.get("k");
  for (let miss = 0; miss < misses; miss++) await cache.get("absent");
}

describe("the fleet's figures", () => {
  test("are the sums of all processes, each counted, minute by minute", async () => {
    const fleet = new Fleet();
    const [one, other] = [fleet.process(), fleet.process()];
    await use(one, 3, 1);
    await use(other, 1, 3);
    await fleet.clock.advance(MINUTE_MS);
    await use(other, 5, 0);
    await fleet.clock.advance(10_000);
    const stats = await one.getStats({ fleet: true });
    expectTypeOf(stats).toEqualTypeOf<FleetStats>();
    expect(stats).toMatchObject({
      hitRate: 9 / 13,
      totalHits: 9,
      totalMisses: 4,
      totalSets: 3,
      totalOperations: 16,
      processes: 2,
      totalKeys: 1,
      since: new Date(START + MINUTE_MS - 3_600_000).toISOString(),
    });
    expect(stats.history).toMatchObject([
      { at: new Date(START).toISOString(), processes: 2, totalHits: 4, totalMisses: 4, hitRate: 0.5 },
      { at: new Date(START + MINUTE_MS).toISOString(), processes: 1, totalHits: 5, totalMisses: 0 },
    ]);
    expect(stats.p99).toBeGreaterThanOrEqual(stats.p50);
  });

  test("include what this process counted a moment ago", async () => {
    const { cache } = memoryCache();
    await use(cache, 2, 0);
    expect(await cache.getStats({ fleet: true })).toMatchObject({ totalHits: 2, processes: 1 });
    await use(cache, 1, 0);
    expect(await cache.getStats({ fleet: true })).toMatchObject({ totalHits: 3, processes: 1 });
  });

  test("reach back as far as requested, and never beyond metrics_retention_days", async () => {
    const fleet = new Fleet();
    const cache = fleet.process({ metricsRetentionDays: 1 });
    await use(cache, 1, 0);
    await fleet.clock.advance(2 * 3_600_000);
    await use(cache, 2, 0);
    const hits = async (since: number): Promise<number> =>
      (await cache.getStats({ fleet: true, since })).totalHits;
    expect([await hits(60), await hits(3 * 3_600), await hits(Number.POSITIVE_INFINITY)]).toEqual([2, 3, 3]);
    await fleet.clock.advance(23 * 3_600_000);
    expect(await hits(Number.POSITIVE_INFINITY)).toBe(2);
    await fleet.clock.advance(2 * 3_600_000);
    expect(fleet.rows().filter((row) => !row.endsWith(`:${(START + 25 * 3_600_000) / MINUTE_MS}`))).toEqual(
      [],
    );
  });

  test("belong to one prefix, survive its clearing and are not keys of it", async () => {
    const fleet = new Fleet();
    const cache = fleet.process();
    const child = cache.namespace("child");
    await use(cache, 1, 0);
    await use(child, 2, 0);
    await cache.getStats({ fleet: true });
    await cache.clear();
    expect(await listed(cache.keys())).toEqual([]);
    expect(await cache.getStats({ fleet: true })).toMatchObject({ totalHits: 1, totalKeys: 0 });
    expect(await child.getStats({ fleet: true })).toMatchObject({ totalHits: 2 });
    expect(await fleet.process({ keyPrefix: "other" }).getStats({ fleet: true })).toMatchObject({
      totalHits: 0,
      processes: 0,
      history: [],
    });
  });
});

describe("a process adds its counts", () => {
  test("at most once in ten seconds, and while it is idle only that it is alive", async () => {
    const fleet = new Fleet();
    const cache = fleet.process();
    await use(cache, 1, 0);
    const swaps = (): number => fleet.backends[0]!.calls("swap");
    const before = swaps();
    for (let second = 0; second < 30; second++) {
      await cache.get("k");
      await fleet.clock.advance(1_000);
    }
    // What it counted, and that it is alive.
    expect(swaps() - before).toBe(6);
    await fleet.clock.advance(10_000);
    const settled = swaps();
    await fleet.clock.advance(MINUTE_MS);
    expect(swaps()).toBe(settled + 6);
  });

  test("when it disconnects", async () => {
    const fleet = new Fleet();
    const [leaving, staying] = [fleet.process(), fleet.process()];
    await use(leaving, 4, 0);
    await leaving.disconnect();
    expect(await staying.getStats({ fleet: true })).toMatchObject({ totalHits: 4 });
  });

  test("later, to their own minute, when the store fails", async () => {
    const fleet = new Fleet();
    const cache = fleet.process();
    await use(cache, 3, 0);
    fleet.backends[0]!.fail("swap", new ConnectionError("gone"), 1);
    await fleet.clock.advance(10_000);
    expect(fleet.rows()).toEqual([]);
    await fleet.clock.advance(MINUTE_MS);
    await cache.get("k");
    await fleet.clock.advance(10_000);
    const { history } = await cache.getStats({ fleet: true });
    expect(history).toMatchObject([
      { at: new Date(START).toISOString(), totalHits: 3 },
      { at: new Date(START + MINUTE_MS).toISOString(), totalHits: 1 },
    ]);
  });

  test("not with metrics off, but sees those of others", async () => {
    const fleet = new Fleet();
    const [counting, silent] = [fleet.process(), fleet.process({ enableMetrics: false })];
    await use(counting, 2, 0);
    await use(silent, 5, 0);
    await fleet.clock.advance(20_000);
    await counting.getStats({ fleet: true });
    expect(await counting.getStats({ fleet: true })).toMatchObject({ totalHits: 2, processes: 1 });
  });

  test("of two caches on one namespace as one process", async () => {
    const { cache } = memoryCache();
    const again = cache.namespace("n");
    const same = cache.namespace("n");
    await use(again, 1, 0);
    await use(same, 1, 0);
    expect(await again.getStats({ fleet: true })).toMatchObject({ totalHits: 2, processes: 1 });
  });
});

describe("an invalid fleet request", () => {
  test.each([
    [{ fleet: "yes" }, "fleet must be true or false"],
    [{ fleet: true, since: 0 }, "since must be a number of seconds above 0"],
    [{ fleet: true, since: Number.NaN }, "since must be a number of seconds above 0"],
    [{ fleet: true, since: "1 hour" }, "since must be a number of seconds above 0"],
    [{ flete: true }, "unknown option"],
  ])("%j is rejected", async (options, message) => {
    const { cache } = memoryCache();
    await expect(cache.getStats(options as never)).rejects.toThrow(message);
  });

  test("a request without fleet has the plain answer", async () => {
    const { cache } = memoryCache();
    const stats = await cache.getStats();
    expectTypeOf(stats).toEqualTypeOf<CacheStats>();
    expect(stats).not.toHaveProperty("history");
  });
});
