// PullCollector: exposes metrics through a registry that Prometheus scrapes, optionally with its own endpoint.
import { requireOptions } from "../../core/arguments.ts";
import type { Collector, MetricTags } from "../../core/collector.ts";
import { ConfigError } from "../../core/errors.ts";
import {
  CATALOGUE,
  METRICS,
  type MetricId,
  type MetricSpec,
  type MetricType,
  metricNamed,
} from "../catalogue.ts";
import {
  isSampleRate,
  requireHost,
  requireLabels,
  requirePort,
  requireText,
} from "../collectors/collector-options.ts";
import { type MetricsView, readFrom } from "../collectors/source.ts";
import { type EndpointAddress, MetricsEndpoint } from "./endpoint.ts";
import { Family, type Sample } from "./family.ts";
import { readers } from "./reader.ts";
import { defaultRegistry, labelName, type MetricRegistry, requireRegistry, seriesName } from "./registry.ts";

export interface PullCollectorOptions {
  /** Prefix of every series name. Default: `xcache`. */
  readonly namespace?: string;
  /** Port of the endpoint, which starts at once; 0 picks a free one. Default: no endpoint, only the registry. */
  readonly port?: number;
  /** Address the endpoint binds to; `0.0.0.0` admits other machines. Default: `127.0.0.1`. */
  readonly host?: string;
  /** Where the series are registered. Default: the default registry of an installed client library, else a built-in one. */
  readonly registry?: MetricRegistry | null;
  /** Follows the namespace in every series name. Default: none. */
  readonly subsystem?: string;
  /** Labels on every series. Default: none. */
  readonly labels?: MetricTags;
}

const OPTIONS = ["namespace", "port", "host", "registry", "subsystem", "labels"];
const OWN_LABELS: ReadonlySet<string> = new Set(METRICS.flatMap(({ labels }) => labels));
/** Limit on metrics; names derived from data would grow without bound. */
const MAX_METRICS = 1_000;

/**
 * Prometheus metrics, on an endpoint of its own or in your registry.
 *
 * @example
 * ```ts
 * const collector = new PullCollector({ namespace: "shop", port: 9464 });
 * const cache = new XCache({ metrics: new CacheMetrics([collector]) });
 * await collector.listening(); // http://127.0.0.1:9464/metrics
 * ```
 */
export class PullCollector implements Collector {
  readonly #registry: MetricRegistry;
  readonly #prefix: readonly (string | undefined)[];
  readonly #labels: MetricTags;
  readonly #families = new Map<string, Family>();
  readonly #views: MetricsView[] = [];
  readonly #endpoint: MetricsEndpoint | undefined;
  #isAddressRequested = false;
  #isClosed = false;
  #dropped = 0;

  /** Throws ConfigError for invalid options, and if the registry already has such series. */
  constructor(options: PullCollectorOptions = {}) {
    requireOptions(options, OPTIONS);
    const { namespace = "xcache", subsystem, port, host = "127.0.0.1", registry, labels = {} } = options;
    this.#prefix = [requireText(namespace, "namespace"), requireText(subsystem ?? "", "subsystem")];
    this.#labels = requireLabels(labels, OWN_LABELS);
    if (port !== undefined) requirePort(port, 0);
    requireHost(host);
    this.#registry = registry == null ? defaultRegistry() : requireRegistry(registry);
    this.#registerAll();
    if (port !== undefined) this.#endpoint = new MetricsEndpoint(host, port, () => this.#page());
    this.#endpoint?.listening().catch((error: Error) => {
      // Warn users who never call listening(), who would otherwise not learn of the failure.
      if (!this.#isAddressRequested) process.emitWarning(error.message, "XCacheWarning");
    });
  }

  /** The endpoint's address; rejects with ConfigError if its port is taken. */
  async listening(): Promise<EndpointAddress> {
    this.#isAddressRequested = true;
    if (this.#endpoint !== undefined) return this.#endpoint.listening();
    throw new ConfigError("FEATURE_DISABLED", "this PullCollector has no endpoint because it has no port", {
      hint: "Pass port, or serve what metrics() returns.",
    });
  }

  /** The exposition of the whole registry, for the application's own endpoint. */
  metrics(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * Rejected measurements: type or labels differ from the first one, not a number, too many series, or after `close()`.
   */
  get dropped(): number {
    return this.#dropped;
  }

  increment(metric: string, value = 1, tags?: MetricTags): void {
    if (value >= 0) this.#record("counter", metric, value, tags);
    else this.#dropped++;
  }

  gauge(metric: string, value: number, tags?: MetricTags): void {
    this.#record("gauge", metric, value, tags);
  }

  histogram(metric: string, value: number, tags?: MetricTags, sampleRate = 1): void {
    if (isSampleRate(sampleRate)) this.#record("histogram", metric, value, tags, 1 / sampleRate);
    else this.#dropped++;
  }

  timing(metric: string, value: number, tags?: MetricTags): void {
    this.#record("histogram", metric, value, tags);
  }

  /** Closes the endpoint and removes the series from the registry. Idempotent. */
  async close(): Promise<void> {
    await this.#endpoint?.close();
    this.#isClosed = true;
    this.#unregister();
  }

  /** @internal */
  [readFrom](view: MetricsView): void {
    this.#views.push(view);
  }

  #registerAll(): void {
    try {
      for (const [id, spec] of Object.entries(CATALOGUE)) {
        const reader = readers()[id as MetricId];
        this.#register(spec.exposition, spec, () => reader(this.#views));
      }
    } catch (cause) {
      const name = seriesName(...this.#prefix, METRICS[this.#families.size]?.exposition);
      this.#unregister();
      throw new ConfigError("CONFIG_INVALID", `the registry rejected the metric ${name}`, {
        hint: "Another PullCollector may have registered it. One collector serves any number of caches: create it once and pass it to each, or give this one its own namespace, subsystem or registry.",
        cause,
      });
    }
  }

  /** By their original names: a registry may have renamed them. */
  #unregister(): void {
    for (const [name, family] of this.#families) {
      const present = this.#registry.getSingleMetric?.(name) ?? family;
      // After the registry was cleared, another collector may have registered the name.
      if (present === family) this.#registry.removeSingleMetric(name);
    }
    this.#families.clear();
  }

  #register(
    plainName: string,
    { type, help, labels, aggregator }: Pick<MetricSpec, "type" | "help" | "labels" | "aggregator">,
    read?: () => readonly Sample[] | Promise<readonly Sample[]>,
  ): Family {
    const name = seriesName(...this.#prefix, plainName);
    const constantLabels = this.#labels;
    const own = { name, help, type, labels, aggregator, constantLabels };
    const family = new Family(read === undefined ? own : { ...own, read });
    this.#registry.registerMetric(family as never);
    this.#families.set(name, family);
    return family;
  }

  #record(type: MetricType, metric: string, value: number, tags: MetricTags | undefined, weight = 1): void {
    const family = Number.isFinite(value) ? this.#familyOf(type, metric, tags) : undefined;
    if (family?.accepts(type, tags) !== true || !family.record(value, tags, weight)) this.#dropped++;
  }

  /** Undefined if it cannot be registered. */
  #familyOf(type: MetricType, metric: string, tags: MetricTags | undefined): Family | undefined {
    if (this.#isClosed || typeof metric !== "string" || metric === "") return undefined;
    const plainName = metricNamed(metric)?.exposition ?? metric;
    const known = this.#families.get(seriesName(...this.#prefix, plainName));
    if (known !== undefined || this.#families.size >= MAX_METRICS) return known;
    const labels = [...new Set(Object.keys(tags ?? {}).map(labelName))];
    if (labels.some((label) => label === "le" || Object.hasOwn(this.#labels, label))) return undefined;
    const help = `Measured by the application as ${metric.slice(0, 100).replace(/[^ -~]/g, "_")}.`;
    const aggregator = type === "gauge" ? "average" : "sum";
    try {
      return this.#register(plainName, { type, help, labels, aggregator });
    } catch {
      return undefined;
    }
  }

  async #page(): Promise<{ contentType: string; body: string }> {
    return { contentType: this.#registry.contentType, body: await this.#registry.metrics() };
  }
}
