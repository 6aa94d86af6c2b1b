// A registry of metrics: the user's own, that of an installed client library, or one that needs no library.
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { optionalPackage } from "../peer-package.ts";

/** One line of an exposition. */
export interface SeriesValue {
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
  /** Where it is not the metric's own, as `_bucket`, `_sum` and `_count` of a histogram. */
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

/** A metric as client libraries keep them. A registry may rename it. */
export interface RegisteredMetric {
  name: string;
  readonly help: string;
  readonly type: string;
  readonly aggregator: string;
  get(): Promise<MetricReading>;
  reset(): void;
}

/** What is asked of a registry; `Registry` of prom-client and of @prometheus-io/client are such. */
export interface MetricRegistry {
  readonly contentType: string;
  // Each library has a type of its own for what it registers.
  registerMetric(metric: never): void;
  removeSingleMetric(name: string): void;
  getSingleMetric?(name: string): unknown;
  metrics(): Promise<string>;
}

/** In the order they are looked for. */
const CLIENTS = ["@prometheus-io/client", "prom-client"] as const;

/** The default registry of the client library that is installed; without one, a registry of our own. */
export function defaultRegistry(): MetricRegistry {
  for (const name of CLIENTS) {
    const client = optionalPackage(name) as { readonly register?: unknown } | undefined;
    if (client?.register !== undefined) return requireRegistry(client.register);
  }
  return new OwnRegistry();
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

export class OwnRegistry implements MetricRegistry {
  readonly contentType = "text/plain; version=0.0.4; charset=utf-8";
  readonly #metrics = new Map<string, RegisteredMetric>();

  registerMetric(metric: RegisteredMetric): void {
    if (this.#metrics.has(metric.name)) throw new Error(`a metric ${metric.name} is registered already`);
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

/** The text format 0.0.4: one HELP and one TYPE line, then the series. */
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
