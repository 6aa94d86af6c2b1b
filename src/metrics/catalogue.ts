// Every metric of the library, once: its type, meaning and labels, and its name in code, in an exposition and in a datagram.

export type MetricType = "counter" | "gauge" | "histogram";

export interface MetricFacts {
  /** As collectors are told it. */
  readonly dotted: string;
  /** Comes after `<namespace>_` in an exposition. */
  readonly exposition: string;
  /** Comes after `<prefix>.` in a datagram. */
  readonly datagram: string;
  readonly type: MetricType;
  readonly help: string;
  readonly labels: readonly string[];
  readonly unit?: "seconds" | "bytes";
  /** How the worker processes of one service are put together to one figure. */
  readonly aggregator: "sum" | "average" | "max" | "first";
}

interface Written extends Omit<MetricFacts, "exposition" | "datagram" | "labels" | "aggregator"> {
  readonly labels?: readonly string[];
  readonly aggregator?: MetricFacts["aggregator"];
}

function metric({ labels = [], aggregator = "sum", ...rest }: Written): MetricFacts {
  const { dotted, type, unit } = rest;
  const suffix = type === "histogram" && unit !== undefined ? `_${unit}` : "";
  return {
    ...rest,
    labels,
    aggregator,
    exposition: `${dotted.replaceAll(".", "_")}${suffix}`,
    datagram: datagramName(dotted),
  };
}

/** `cache.gets.total` is sent as `gets`. */
export const datagramName = (dotted: string): string =>
  dotted.replace(/^cache\./, "").replace(/\.total$/, "") || dotted;

const counter = (dotted: string, help: string, labels: readonly string[] = []): MetricFacts =>
  metric({ dotted, type: "counter", help, labels });

const gauge = (dotted: string, help: string, more: Partial<Written> = {}): MetricFacts =>
  metric({ dotted, type: "gauge", help, ...more });

export const CATALOGUE = {
  gets: counter("cache.gets.total", "Keys asked for, by whether they were there.", ["result"]),
  hits: counter("cache.hits.total", "Keys asked for that were there."),
  misses: counter("cache.misses.total", "Keys asked for that were not there."),
  storeHits: counter(
    "cache.store_hits.total",
    "Hits that the store was asked for; all others were answered inside the process.",
  ),
  sets: counter("cache.sets.total", "Entries stored."),
  deletes: counter("cache.deletes.total", "Entries deleted by key."),
  invalidations: counter("cache.invalidations.total", "Invalidations by tag, by pattern and of everything."),
  evictions: counter("cache.evictions.total", "Entries dropped to make room."),
  errors: counter("cache.errors.total", "Operations that failed, by kind of error.", [
    "operation",
    "error_type",
    "error_class",
  ]),
  collectorErrors: counter(
    "cache.collector_errors.total",
    "Measurements that a collector did not take, by reason.",
    ["collector", "reason"],
  ),
  hitRate: gauge("cache.hit_rate", "Share of the keys asked for that were there, 0 to 1.", {
    aggregator: "average",
  }),
  sizeBytes: gauge("cache.size_bytes", "Bytes that the entries take in the store.", {
    unit: "bytes",
    aggregator: "max",
  }),
  keysCount: gauge("cache.keys_count", "Entries in the store.", { aggregator: "max" }),
  memoryUsage: gauge(
    "cache.memory_usage",
    "Share of the store's memory or room that is in use, 0 to 1; 0 where it has no bound.",
    {
      aggregator: "max",
    },
  ),
  circuitBreakerOpen: gauge(
    "cache.circuit_breaker_open",
    "1 while the store is left alone after repeated failures, else 0.",
    { aggregator: "max" },
  ),
  poolUtilization: gauge(
    "cache.pool_utilization",
    "Share of the connections that take no more calls, 0 to 1.",
    {
      aggregator: "max",
    },
  ),
  poolWaiting: gauge("cache.pool_waiting", "Calls that wait for a connection."),
  info: gauge("cache.info", "Always 1; the labels say what runs here.", {
    labels: ["version", "backend"],
    aggregator: "first",
  }),
  operationDuration: metric({
    dotted: "cache.operation_duration",
    type: "histogram",
    unit: "seconds",
    help: "How long operations take; those that were not timed are counted like those that were.",
    labels: ["operation"],
  }),
} as const satisfies Record<string, MetricFacts>;

export type MetricId = keyof typeof CATALOGUE;

export const METRICS: readonly MetricFacts[] = Object.values(CATALOGUE);

const byDottedName = new Map(METRICS.map((facts) => [facts.dotted, facts]));

export const metricNamed = (dotted: string): MetricFacts | undefined => byDottedName.get(dotted);
