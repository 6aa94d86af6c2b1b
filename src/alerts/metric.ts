// The metrics an alert can watch: each reads one figure off a look, or says why there is none.
import type { MetricsSnapshot } from "./snapshot.ts";

/** A figure, or the reason why there is none. */
export type Reading = { readonly value: number } | { readonly noData: string };

/** How a figure is shown to people. */
type Unit = "fraction" | "seconds" | "count" | "per second" | "flag";

interface MetricFacts {
  readonly unit: Unit;
  read(look: MetricsSnapshot): Reading;
}

const always = (unit: Unit, read: (look: MetricsSnapshot) => number): MetricFacts => ({
  unit,
  read: (look) => ({ value: read(look) }),
});

/** A cache that nobody asks has no hit rate: the record says 0 then, which is not a bad one. */
const ofLookups = (unit: Unit, read: (look: MetricsSnapshot) => number): MetricFacts => ({
  unit,
  read: (look) => (look.newLookups > 0 ? { value: read(look) } : { noData: "no reads since the last look" }),
});

const ofOperations = (unit: Unit, read: (look: MetricsSnapshot) => number): MetricFacts => ({
  unit,
  read: (look) =>
    look.newOperations > 0 ? { value: read(look) } : { noData: "no operations since the last look" },
});

const METRICS = {
  hit_rate: ofLookups("fraction", ({ record }) => record.hitRate),
  avg_response_time: ofOperations("seconds", ({ record }) => record.avgResponseTime),
  total_operations: always("count", ({ record }) => record.totalOperations),
  error_rate: ofOperations("fraction", ({ record }) => record.errorRate),
  p50: ofOperations("seconds", ({ record }) => record.p50),
  p95: ofOperations("seconds", ({ record }) => record.p95),
  p99: ofOperations("seconds", ({ record }) => record.p99),
  operations_per_second: always("per second", ({ record }) => record.operationsPerSecond),
  // The record counts since the process began; such an alert would never be resolved.
  connection_failures: always("count", ({ recentFailures }) => recentFailures),
  circuit_breaker_open: always("flag", ({ record }) => (record.circuitBreakerOpen ? 1 : 0)),
  pool_utilization: always("fraction", ({ record }) => record.poolUtilization),
  memory_usage: always("fraction", ({ record }) => record.memoryUsage),
  eviction_rate: always("per second", ({ record }) => record.evictionRate),
} as const satisfies Readonly<Record<string, MetricFacts>>;

/** What an alert can watch: the figures of `getComprehensiveMetrics()` by their names on the wire. */
export type AlertMetric = keyof typeof METRICS;

export const METRIC_IDS = Object.keys(METRICS) as readonly AlertMetric[];

export function readMetric(metric: AlertMetric, look: MetricsSnapshot): Reading {
  const reading = METRICS[metric].read(look);
  if ("noData" in reading || Number.isFinite(reading.value)) return reading;
  return { noData: `the cache says ${reading.value}` };
}

/** The figure for people, such as `0.62 (62 %)` or `120 ms`. */
export function showFigure(metric: AlertMetric, value: number): string {
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
