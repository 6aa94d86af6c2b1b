// Metric registries: the user's own, an installed client library's, or a built-in one; and the names they accept.
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { optionalPackage } from "../../core/peer-package.ts";

/** One line of an exposition. */
export interface SeriesValue {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** If it differs from the metric's own, as for `_bucket`, `_sum` and `_count` of a histogram. */
  readonly metricName?: string;
}

/** All lines of one metric. */
export interface MetricReading {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  readonly values: SeriesValue[];
}

/** A metric as client libraries store it. A registry may rename it. */
export interface RegisteredMetric {
  name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  get(): Promise<MetricReading>;
  reset(): void;
}

/** The registry interface we need; `Registry` of prom-client and of @prometheus-io/client implement it. */
export interface MetricRegistry {
  readonly contentType: string;
  // Each library has its own metric type.
  registerMetric(metric: never): void;
  removeSingleMetric(name: string): void;
  getSingleMetric?(name: string): unknown;
  metrics(): Promise<string>;
}

/** In order of preference. */
const CLIENTS = ["@prometheus-io/client", "prom-client"] as const;

/** The default registry of an installed client library, else a built-in one. */
export function defaultRegistry(): MetricRegistry {
  for (const name of CLIENTS) {
    const client = optionalPackage(name) as { readonly register?: unknown } | undefined;
    if (client?.register !== undefined) return requireRegistry(client.register);
  }
  return new BuiltInRegistry();
}

export function requireRegistry(registry: unknown): MetricRegistry {
  const methods = ["registerMetric", "removeSingleMetric", "metrics"];
  const isOne =
    typeof registry === "object" &&
    registry !== null &&
    methods.every((method) => typeof (registry as Record<string, unknown>)[method] === "function");
  if (isOne) return registry as MetricRegistry;
  throw new ConfigError(
    "ARGUMENT_INVALID",
    `registry must be a registry of prom-client or @prometheus-io/client, got ${describeArrival(registry)}`,
  );
}

export class BuiltInRegistry implements MetricRegistry {
  readonly contentType = "text/plain; version=0.0.4; charset=utf-8";
  readonly #metrics = new Map<string, RegisteredMetric>();

  registerMetric(metric: RegisteredMetric): void {
    if (this.#metrics.has(metric.name)) throw new Error(`the metric ${metric.name} is already registered`);
    this.#metrics.set(metric.name, metric);
  }

  removeSingleMetric(name: string): void {
    this.#metrics.delete(name);
  }

  async metrics(): Promise<string> {
    const readings = await Promise.all([...this.#metrics.values()].map((metric) => metric.get()));
    return readings.map(exposition).join("");
  }
}

/** Text format 0.0.4: a HELP and a TYPE line, then the series. */
function exposition({ name, help, type, values }: MetricReading): string {
  const lines = values.map(({ labels, metricName = name, value }) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(String(text))}"`);
    return `${metricName}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${numberText(value)}\n`;
  });
  return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

const escapeHelp = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const escapeLabel = (text: string): string => escapeHelp(text).replaceAll('"', '\\"');

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}

/** A valid metric name; other characters become underscores. */
export function seriesName(...parts: readonly (string | undefined)[]): string {
  const name = parts
    .filter((part) => part !== undefined && part !== "")
    .join("_")
    .replace(/[^a-zA-Z0-9_:]/g, "_");
  return /^[a-zA-Z_:]/.test(name) ? name : `_${name}`;
}

/** A valid label name; a leading double underscore is reserved for the server. */
export function labelName(name: string): string {
  const plain = name.replace(/[^a-zA-Z0-9_]/g, "_").replace(/^__+/, "_");
  return /^[a-zA-Z_]/.test(plain) ? plain : `_${plain}`;
}
