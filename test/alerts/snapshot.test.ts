import { describe, expect, it } from "vitest";
import { COMPARISON_IDS, compares } from "../../src/alerts/condition.ts";
import { formatValue, METRIC_IDS, readMetric } from "../../src/alerts/metric.ts";
import { FAILURE_WINDOW_MS, SnapshotReader } from "../../src/alerts/snapshot.ts";
import type { ComprehensiveMetrics } from "../../src/core/stats.ts";
import { toSnake } from "../../src/core/wire.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { callsOf, Figures } from "./figures.ts";

function observed(): { figures: Figures; clock: ManualClock; observer: SnapshotReader } {
  const figures = new Figures();
  const clock = new ManualClock();
  const observer = new SnapshotReader(figures, clock);
  observer.begin();
  return { figures, clock, observer };
}

describe("a check", () => {
  it("reports what is new since the previous check, and nothing from before the start", () => {
    const figures = new Figures();
    figures.read(1_000, 0.5);
    const observer = new SnapshotReader(figures, new ManualClock());
    observer.begin();
    expect(observer.read()).toMatchObject({ newOperations: 0, newLookups: 0 });
    figures.read(3, 0.5);
    expect(observer.read()).toMatchObject({ newOperations: 3, newLookups: 3 });
    expect(observer.read()).toMatchObject({ newOperations: 0, newLookups: 0 });
  });

  it.each(["get", "getMany", "getOrSet"])("counts %s as a read", (name) => {
    const { figures, observer } = observed();
    figures.set({ byOperation: { [name]: callsOf(2), set: callsOf(9) } });
    expect(observer.read().newLookups).toBe(2);
  });

  it("reports the connection failures of the last five minutes", async () => {
    const { figures, clock, observer } = observed();
    figures.set({ connectionFailures: 3 });
    await clock.advance(60_000);
    expect(observer.read().recentFailures).toBe(3);
    figures.set({ connectionFailures: 4 });
    await clock.advance(FAILURE_WINDOW_MS - 30_000);
    expect(observer.read().recentFailures).toBe(4);
    await clock.advance(30_000);
    expect(observer.read().recentFailures).toBe(1);
    await clock.advance(FAILURE_WINDOW_MS);
    expect(observer.read().recentFailures).toBe(0);
  });

  it("does not lose failures when it runs many times a second", async () => {
    const { figures, clock, observer } = observed();
    for (let second = 0; second < 20; second++) {
      figures.set({ connectionFailures: second });
      await clock.advance(1_000);
      expect(observer.read().recentFailures).toBe(second);
    }
  });
});

describe("a metric", () => {
  const SCALARS = Object.entries(new Figures().record)
    .filter(([, value]) => typeof value !== "object")
    .map(([name]) => name);

  it("exists for every plain figure of the record, under its wire name", () => {
    expect([...METRIC_IDS].sort()).toEqual(
      // Only a record with a feed has the last one.
      [...SCALARS, "silentFeeds"].map((name) => toSnake<string>(name)).sort(),
    );
  });

  const busy = (figures: Figures): void => figures.read(10, 0.25);

  it.each([
    ["hit_rate", { hitRate: 0.25 }, 0.25],
    ["avg_response_time", { avgResponseTime: 0.2 }, 0.2],
    ["total_operations", { totalOperations: 77 }, 77],
    ["error_rate", { errorRate: 0.5 }, 0.5],
    ["p50", { p50: 1 }, 1],
    ["p95", { p95: 2 }, 2],
    ["p99", { p99: 3 }, 3],
    ["operations_per_second", { operationsPerSecond: 12 }, 12],
    ["connection_failures", { connectionFailures: 5 }, 5],
    ["circuit_breaker_open", { circuitBreakerOpen: true }, 1],
    ["silent_feeds", { silentFeeds: 2 }, 2],
    ["pool_utilization", { poolUtilization: 0.9 }, 0.9],
    ["memory_usage", { memoryUsage: 0.8 }, 0.8],
    ["eviction_rate", { evictionRate: 4 }, 4],
  ] as const)("%s reads %o as %d", (metric, figures: Partial<ComprehensiveMetrics>, value) => {
    const { figures: source, observer } = observed();
    busy(source);
    source.set(figures);
    expect(readMetric(metric, observer.read())).toEqual({ value });
  });

  it("reads a closed circuit as 0", () => {
    expect(readMetric("circuit_breaker_open", observed().observer.read())).toEqual({ value: 0 });
  });

  it("has no data, with a reason, when nothing happened to compute a rate from", () => {
    const { observer } = observed();
    const snapshot = observer.read();
    expect(readMetric("hit_rate", snapshot)).toEqual({ noData: "no reads since the last check" });
    for (const metric of ["error_rate", "avg_response_time", "p50", "p95", "p99"] as const) {
      expect(readMetric(metric, snapshot)).toEqual({ noData: "no operations since the last check" });
    }
  });

  it("hit_rate has no data while a cache is only written to", () => {
    const { figures, observer } = observed();
    figures.set({ totalOperations: 100, byOperation: { setMany: callsOf(100) } });
    const snapshot = observer.read();
    expect(readMetric("hit_rate", snapshot)).toEqual({ noData: "no reads since the last check" });
    expect(readMetric("error_rate", snapshot)).toEqual({ value: 0 });
  });

  it("treats a figure that is not a number as no data", () => {
    const { figures, observer } = observed();
    figures.set({ memoryUsage: Number.NaN });
    expect(readMetric("memory_usage", observer.read())).toEqual({ noData: "the cache reports NaN" });
  });

  it("is shown in a unit for humans", () => {
    expect(formatValue("hit_rate", 0.6212345)).toBe("0.621235 (62.12 %)");
    expect(formatValue("avg_response_time", 0.1)).toBe("100 ms");
    expect(formatValue("eviction_rate", 12.5)).toBe("12.5 per second");
    expect(formatValue("connection_failures", 3)).toBe("3");
  });
});

describe("a comparison", () => {
  it.each([
    ["less_than", [true, false, false]],
    ["greater_than", [false, false, true]],
    ["less_or_equal", [true, true, false]],
    ["greater_or_equal", [false, true, true]],
    ["equal", [false, true, false]],
    ["not_equal", [true, false, true]],
  ] as const)("%s holds for a value below, at and above: %o", (comparison, expected) => {
    expect([0.5, 0.7, 0.9].map((value) => compares(value, comparison, 0.7))).toEqual(expected);
  });

  it("has six operators", () => {
    expect(COMPARISON_IDS).toHaveLength(6);
  });
});
