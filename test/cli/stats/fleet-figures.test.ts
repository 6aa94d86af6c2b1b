// Figures drawn from the fleet's history.
import { describe, expect, test } from "vitest";
import { countedBetween, intervals, operationsPerSecond } from "../../../src/cli/stats/fleet-figures.ts";
import { WatchSeries } from "../../../src/cli/stats/watch-series.ts";
import type { FleetMinute, FleetStats } from "../../../src/core/stats.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const at = (minute: number): string => new Date(START + minute * 60_000).toISOString();

const ZEROES = {
  processes: 1,
  hitRate: 0,
  totalHits: 0,
  totalMisses: 0,
  totalSets: 0,
  totalDeletes: 0,
  totalInvalidations: 0,
  totalErrors: 0,
  totalEvictions: 0,
  totalStoreHits: 0,
  totalStaleServed: 0,
  totalLoads: 0,
  totalCoalesced: 0,
  totalOperations: 0,
  avgResponseTime: 0,
  p50: 0,
  p95: 0,
  p99: 0,
};

const minute = (number: number, operations: number, hits = 0, misses = 0): FleetMinute => ({
  ...ZEROES,
  at: at(number),
  totalOperations: operations,
  totalHits: hits,
  totalMisses: misses,
});

const stats = (history: readonly FleetMinute[], since = 0, totalKeys = 0): FleetStats => ({
  ...ZEROES,
  totalOperations: history.reduce((sum, { totalOperations }) => sum + totalOperations, 0),
  totalKeys,
  totalMemoryBytes: 0,
  memoryUsageMb: 0,
  uptimeSeconds: 0,
  approximate: false,
  scope: "prefix",
  since: at(since),
  history,
});

test("a rate is over the time in which something was counted", () => {
  expect(operationsPerSecond(stats([minute(50, 60), minute(51, 60)]), START + 52 * 60_000)).toBe(1);
  expect(operationsPerSecond(stats([]), START)).toBe(0);
});

describe("what was counted between two looks", () => {
  test("is what minutes have grown by, and what new ones hold", () => {
    const before = stats([minute(1, 10), minute(2, 5)]);
    const after = stats([minute(1, 12), minute(2, 5), minute(3, 7)]);
    expect(countedBetween(before, after).totalOperations).toBe(9);
  });

  test("is not lessened by minutes that drop out at the other end", () => {
    const before = stats([minute(1, 1_000), minute(2, 5)]);
    const after = stats([minute(2, 6)]);
    expect(countedBetween(before, after).totalOperations).toBe(1);
  });

  test("is nothing when nothing was counted", () => {
    expect(countedBetween(stats([minute(1, 3)]), stats([minute(1, 3)])).totalOperations).toBe(0);
    expect(countedBetween(stats([]), stats([minute(1, 3)])).totalOperations).toBe(3);
  });
});

test("a curve has a stretch for every minute, or for several where there are too many", () => {
  const figures = stats([minute(0, 4, 1, 1), minute(3, 8)], 0);
  const now = START + 3 * 60_000 + 1;
  expect(intervals(figures, now, 10)).toEqual([
    { operations: 4, hitRate: 0.5 },
    { operations: 0, hitRate: undefined },
    { operations: 0, hitRate: undefined },
    { operations: 8, hitRate: undefined },
  ]);
  expect(intervals(figures, now, 2).map(({ operations }) => operations)).toEqual([4, 8]);
});

describe("watching", () => {
  test("tells the rate of the last quarter of a minute, and what changed since it began", () => {
    const series = new WatchSeries();
    series.add(stats([minute(0, 0)], 0, 10), 0);
    expect(series.points.at(-1)?.operationsPerSecond).toBeUndefined();
    series.add(stats([minute(0, 100, 30, 10)], 0, 15), 10_000);
    expect(series.points.at(-1)).toMatchObject({ operationsPerSecond: 10, hitRate: 0.75 });
    series.add(stats([minute(0, 100, 30, 10)], 0, 12), 20_000);
    expect(series.points.at(-1)?.operationsPerSecond).toBe(0);
    expect(series.changes).toMatchObject({ operations: 100, keys: 2 });
  });

  test("begins anew when it is reset", () => {
    const series = new WatchSeries();
    series.add(stats([minute(0, 0)], 0, 10), 0);
    series.add(stats([minute(0, 100)], 0, 15), 10_000);
    series.reset();
    expect(series.changes).toMatchObject({ operations: 0, keys: 0 });
    expect(series.points).toHaveLength(1);
    series.add(stats([minute(0, 101)], 0, 16), 20_000);
    expect(series.changes).toMatchObject({ operations: 1, keys: 1 });
  });
});
