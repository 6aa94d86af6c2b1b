// Figures derived from the fleet's history.
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
  activeSeconds: 0,
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

describe("the current rate", () => {
  const now = START + 52 * 60_000 + 5_000;
  const active = (number: number, operations: number, activeSeconds: number, processes = 1): FleetMinute => ({
    ...minute(number, operations),
    activeSeconds,
    processes,
  });

  test("is taken over the time in which something was counted, not over whole minutes", () => {
    expect(operationsPerSecond(stats([active(51, 2_850, 30)]), now)).toBe(95);
    expect(operationsPerSecond(stats([active(51, 2_850, 30), active(52, 950, 10)]), now)).toBe(95);
  });

  test("sums up all processes", () => {
    expect(operationsPerSecond(stats([active(51, 3 * 2_850, 90, 3)]), now)).toBe(285);
  });

  test("is 0 without recent reports, and counts rows without a duration as whole minutes", () => {
    expect(operationsPerSecond(stats([active(40, 2_850, 30)]), now)).toBe(0);
    expect(operationsPerSecond(stats([minute(51, 60)]), now)).toBe(1);
    expect(operationsPerSecond(stats([]), now)).toBe(0);
  });
});

describe("the count between two readings", () => {
  test("is the growth of known minutes plus the counts of new ones", () => {
    const before = stats([minute(1, 10), minute(2, 5)]);
    const after = stats([minute(1, 12), minute(2, 5), minute(3, 7)]);
    expect(countedBetween(before, after).totalOperations).toBe(9);
  });

  test("is not reduced by old minutes that drop out", () => {
    const before = stats([minute(1, 1_000), minute(2, 5)]);
    const after = stats([minute(2, 6)]);
    expect(countedBetween(before, after).totalOperations).toBe(1);
  });

  test("is zero when nothing was counted", () => {
    expect(countedBetween(stats([minute(1, 3)]), stats([minute(1, 3)])).totalOperations).toBe(0);
    expect(countedBetween(stats([]), stats([minute(1, 3)])).totalOperations).toBe(3);
  });
});

test("a sparkline has one step per minute, or one per several minutes if there are too many", () => {
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
  const counted = (
    number: number,
    operations: number,
    hits: number,
    misses: number,
    activeSeconds: number,
  ) => ({
    ...minute(number, operations, hits, misses),
    activeSeconds,
  });

  test("shows a steady rate unchanged at every reading, from the first one on", () => {
    const series = new WatchSeries();
    // A process does 95 operations a second and reports them every ten seconds; the store is read every two.
    for (let seconds = 34; seconds < 120; seconds += 2) {
      const reported = Math.floor(seconds / 10) * 10;
      const minutes = [Math.min(reported, 60), Math.max(0, reported - 60)].flatMap((active, number) =>
        active === 0 ? [] : [counted(number, active * 95, 0, 0, active)],
      );
      series.add(stats(minutes), seconds * 1_000, START + seconds * 1_000);
    }
    expect(new Set(series.points.map(({ operationsPerSecond: rate }) => rate))).toEqual(new Set([95]));
  });

  test("shows the rate of the latest reports, and the changes since it began", () => {
    const series = new WatchSeries();
    series.add(stats([counted(0, 0, 0, 0, 0)], 0, 10), 0, START);
    series.add(stats([counted(0, 100, 30, 10, 10)], 0, 15), 10_000, START + 10_000);
    expect(series.points.at(-1)).toMatchObject({ operationsPerSecond: 10, hitRate: 0.75 });
    series.add(stats([counted(0, 100, 30, 10, 10)], 0, 12), 26_000, START + 26_000);
    expect(series.points.at(-1)?.operationsPerSecond).toBe(0);
    expect(series.changes).toMatchObject({ operations: 100, keys: 2 });
  });

  test("starts over when it is reset", () => {
    const series = new WatchSeries();
    series.add(stats([minute(0, 0)], 0, 10), 0, START);
    series.add(stats([minute(0, 100)], 0, 15), 10_000, START);
    series.reset();
    expect(series.changes).toMatchObject({ operations: 0, keys: 0 });
    expect(series.points).toHaveLength(1);
    series.add(stats([minute(0, 101)], 0, 16), 20_000, START);
    expect(series.changes).toMatchObject({ operations: 1, keys: 1 });
  });
});
