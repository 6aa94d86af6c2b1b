// The table of all metrics: type, meaning, labels, and names in code, in a Prometheus exposition and in a StatsD datagram.

export type MetricType = "counter" | "gauge" | "histogram";

export interface MetricSpec {
  /** The name collectors receive. */
  readonly dotted: string;
  /** Follows `<namespace>_` in an exposition. */
  readonly exposition: string;
  /** Follows `<prefix>.` in a datagram. */
  readonly datagram: string;
  readonly type: MetricType;
  readonly help: string;
  readonly labels: readonly string[];
  readonly unit?: "seconds" | "bytes";
  /** How the values of several worker processes are combined. */
  readonly aggregator: "sum" | "average" | "max" | "min" | "first";
}

interface MetricEntry extends Omit<MetricSpec, "exposition" | "datagram" | "labels" | "aggregator"> {
  readonly labels?: readonly string[];
  readonly aggregator?: MetricSpec["aggregator"];
}

function metric({ dotted, type, help, unit, labels = [], aggregator = "sum" }: MetricEntry): MetricSpec {
  const suffix = type === "histogram" && unit !== undefined ? `_${unit}` : "";
  const exposition = `${dotted.replaceAll(".", "_")}${suffix}`;
  const spec = { dotted, type, help, labels, aggregator, exposition, datagram: datagramName(dotted) };
  return unit === undefined ? spec : { ...spec, unit };
}

/** `cache.gets.total` is sent as `gets`. */
export function datagramName(dotted: string): string {
  // No patterns: compiling them would take a good part of an import.
  const name = dotted.startsWith("cache.") ? dotted.slice("cache.".length) : dotted;
  return (name.endsWith(".total") ? name.slice(0, -".total".length) : name) || dotted;
}

const counter = (dotted: string, help: string, labels: readonly string[] = []): MetricSpec =>
  metric({ dotted, type: "counter", help, labels });

const gauge = (dotted: string, help: string, more: Partial<MetricEntry> = {}): MetricSpec =>
  metric({ dotted, type: "gauge", help, ...more });

export const CATALOGUE = {
  gets: counter("cache.gets.total", "Keys read, by result.", ["result"]),
  hits: counter("cache.hits.total", "Keys found by reads."),
  misses: counter("cache.misses.total", "Keys not found by reads."),
  storeHits: counter(
    "cache.store_hits.total",
    "Hits answered by the store; all others were answered inside the process.",
  ),
  sets: counter("cache.sets.total", "Entries stored."),
  deletes: counter("cache.deletes.total", "Entries deleted by key."),
  invalidations: counter("cache.invalidations.total", "Invalidations by tag or pattern, and clears."),
  evictions: counter("cache.evictions.total", "Entries evicted to free memory."),
  errors: counter("cache.errors.total", "Failed operations, by type of error.", [
    "operation",
    "error_type",
    "error_class",
  ]),
  collectorErrors: counter("cache.collector_errors.total", "Measurements a collector lost, by reason.", [
    "collector",
    "reason",
  ]),
  hitRate: gauge("cache.hit_rate", "Fraction of reads that were hits, 0 to 1.", {
    aggregator: "average",
  }),
  sizeBytes: gauge("cache.size_bytes", "Bytes used by the entries in the store.", {
    unit: "bytes",
    aggregator: "max",
  }),
  keysCount: gauge("cache.keys_count", "Entries in the store.", { aggregator: "max" }),
  memoryUsage: gauge(
    "cache.memory_usage",
    "Fraction of the store's memory or disk limit in use, 0 to 1; 0 without a limit.",
    {
      aggregator: "max",
    },
  ),
  circuitBreakerOpen: gauge(
    "cache.circuit_breaker_open",
    "1 while the circuit breaker is open or probing, else 0.",
    { aggregator: "max" },
  ),
  poolUtilization: gauge(
    "cache.pool_utilization",
    "Fraction of the connections that accept no more calls, 0 to 1.",
    {
      aggregator: "max",
    },
  ),
  poolWaiting: gauge("cache.pool_waiting", "Calls waiting for a connection."),
  info: gauge("cache.info", "Always 1; the labels describe this cache.", {
    labels: ["version", "backend"],
    aggregator: "first",
  }),
  operationDuration: metric({
    dotted: "cache.operation_duration",
    type: "histogram",
    unit: "seconds",
    help: "Duration of operations; timed calls are weighted to represent all calls.",
    labels: ["operation"],
  }),
  feedAlive: gauge(
    "cache.feed.alive",
    "1 while every database feed of the process is alive, else 0: reads of its tables bypass the cache.",
    { aggregator: "min" },
  ),
  feedLag: metric({
    dotted: "cache.feed.lag",
    type: "histogram",
    unit: "seconds",
    help: "Time from a commit in the database to its invalidation, measured by the leader.",
  }),
  feedInvalidations: counter("cache.feed.invalidations.total", "Transactions that a feed invalidated."),
  feedGaps: counter(
    "cache.feed.gaps.total",
    "Times a feed invalidated whole tables, since changes may have been missed.",
  ),
  feedLeaderChanges: counter(
    "cache.feed.leader_changes.total",
    "Times this process became the leader of a feed.",
  ),
} as const satisfies Record<string, MetricSpec>;

export type MetricId = keyof typeof CATALOGUE;

export const METRICS: readonly MetricSpec[] = Object.values(CATALOGUE);

const byDottedName = new Map(METRICS.map((spec) => [spec.dotted, spec]));

export const metricNamed = (dotted: string): MetricSpec | undefined => byDottedName.get(dotted);
