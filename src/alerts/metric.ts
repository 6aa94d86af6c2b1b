// The metrics an alert can watch: each reads one value from a snapshot, or says why there is none.
import type { MetricsSnapshot } from "./snapshot.ts";

/** A value, or the reason why there is none. */
export type Reading = { readonly value: number } | { readonly noData: string };

/** How a value is formatted for people. */
type Unit = "fraction" | "seconds" | "count" | "per second" | "flag";

interface MetricSpec {
  readonly unit: Unit;
  read(snapshot: MetricsSnapshot): Reading;
}

const always = (unit: Unit, read: (snapshot: MetricsSnapshot) => number): MetricSpec => ({
  unit,
  read: (snapshot) => ({ value: read(snapshot) }),
});

/** Without reads there is no hit rate: the metrics then say 0, which must not count as a bad one. */
const withLookups = (unit: Unit, read: (snapshot: MetricsSnapshot) => number): MetricSpec => ({
  unit,
  read: (snapshot) =>
    snapshot.newLookups > 0 ? { value: read(snapshot) } : { noData: "no reads since the last check" },
});

const withOperations = (unit: Unit, read: (snapshot: MetricsSnapshot) => number): MetricSpec => ({
  unit,
  read: (snapshot) =>
    snapshot.newOperations > 0 ? { value: read(snapshot) } : { noData: "no operations since the last check" },
});

const METRICS = {
  hit_rate: withLookups("fraction", ({ record }) => record.hitRate),
  avg_response_time: withOperations("seconds", ({ record }) => record.avgResponseTime),
  total_operations: always("count", ({ record }) => record.totalOperations),
  error_rate: withOperations("fraction", ({ record }) => record.errorRate),
  p50: withOperations("seconds", ({ record }) => record.p50),
  p95: withOperations("seconds", ({ record }) => record.p95),
  p99: withOperations("seconds", ({ record }) => record.p99),
  operations_per_second: always("per second", ({ record }) => record.operationsPerSecond),
  // The metrics count since the process started; an alert on that would never resolve.
  connection_failures: always("count", ({ recentFailures }) => recentFailures),
  circuit_breaker_open: always("flag", ({ record }) => (record.circuitBreakerOpen ? 1 : 0)),
  pool_utilization: always("fraction", ({ record }) => record.poolUtilization),
  memory_usage: always("fraction", ({ record }) => record.memoryUsage),
  eviction_rate: always("per second", ({ record }) => record.evictionRate),
  silent_feeds: {
    unit: "count",
    read: ({ record: { silentFeeds: value } }) =>
      value === undefined ? { noData: "the cache has no database feed" } : { value },
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** A metric an alert can watch: a field of `getComprehensiveMetrics()` in snake case. */
export type AlertMetric = keyof typeof METRICS;

export const METRIC_IDS = Object.keys(METRICS) as readonly AlertMetric[];

export function readMetric(metric: AlertMetric, snapshot: MetricsSnapshot): Reading {
  const reading = METRICS[metric].read(snapshot);
  if ("noData" in reading || Number.isFinite(reading.value)) return reading;
  return { noData: `the cache reports ${reading.value}` };
}

/** The value for people, such as `0.62 (62 %)` or `120 ms`. */
export function formatValue(metric: AlertMetric, value: number): string {
  const plain = String(Number(value.toPrecision(6)));
  switch (METRICS[metric].unit) {
    case "fraction":
      return `${plain} (${Number((value * 100).toPrecision(4))} %)`;
    case "seconds":
      return `${Number((value * 1000).toPrecision(4))} ms`;
    case "per second":
      return `${plain} per second`;
    default:
      return plain;
  }
}
