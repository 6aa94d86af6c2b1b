// PullCollector: what caches count, as series of a registry that Prometheus scrapes, with an endpoint of its own.

import { requireOptions } from "../../core/arguments.ts";
import type { Collector, MetricTags } from "../../core/collector.ts";
import { ConfigError } from "../../core/errors.ts";
import {
  CATALOGUE,
  METRICS,
  type MetricFacts,
  type MetricId,
  type MetricType,
  metricNamed,
} from "../catalogue.ts";
import {
  isShare,
  requireHost,
  requireLabels,
  requirePort,
  requireText,
} from "../collectors/collector-options.ts";
import { type MetricsView, readFrom } from "../collectors/reading-collector.ts";
import { type EndpointAddress, MetricsEndpoint } from "./endpoint.ts";
import { Family, type Sample } from "./family.ts";
import { READERS } from "./reader.ts";
import { defaultRegistry, type MetricRegistry, requireRegistry } from "./registry.ts";
import { labelName, seriesName } from "./series-name.ts";

export interface PullCollectorOptions {
  /** First part of every series name. Default: `xcache`. */
  readonly namespace?: string;
  /** Port of the endpoint, which listens at once; 0 takes a free one. Default: no endpoint, only the registry. */
  readonly port?: number;
  /** Address the endpoint binds. Default: `127.0.0.1`; `0.0.0.0` lets other machines ask. */
  readonly host?: string;
  /** Where the series are registered. Default: the default registry of the installed client library, if there is one. */
  readonly registry?: MetricRegistry | null;
  /** Comes after the namespace in every series name. Default: none. */
  readonly subsystem?: string;
  /** Labels on every series. Default: none. */
  readonly labels?: MetricTags;
}

const OPTIONS = ["namespace", "port", "host", "registry", "subsystem", "labels"];
const OWN_LABELS: ReadonlySet<string> = new Set(METRICS.flatMap(({ labels }) => labels));
/** Metrics of the application's own; a name made from data would grow without end. */
const MOST_METRICS = 1_000;

export class PullCollector implements Collector {
  readonly #registry: MetricRegistry;
  readonly #prefix: readonly (string | undefined)[];
  readonly #labels: MetricTags;
  readonly #families = new Map<string, Family>();
  readonly #views: MetricsView[] = [];
  readonly #endpoint: MetricsEndpoint | undefined;
  #isAskedFor = false;
  #isClosed = false;
  #dropped = 0;

  /** Throws ConfigError for options that cannot be used, and when the registry has such series already. */
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
      // Whoever does not ask would otherwise never learn of a taken port.
      if (!this.#isAskedFor) process.emitWarning(error.message, "XCacheWarning");
    });
  }

  /** Where the endpoint can be asked; rejects with ConfigError when its port is taken. */
  async listening(): Promise<EndpointAddress> {
    this.#isAskedFor = true;
    if (this.#endpoint !== undefined) return this.#endpoint.listening();
    throw new ConfigError("FEATURE_DISABLED", "this PullCollector has no endpoint because it has no port", {
      hint: "Pass port, or serve what metrics() returns.",
    });
  }

  /** The text of the whole registry, for an endpoint of the application's own. */
  metrics(): Promise<string> {
    return this.#registry.metrics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * Measurements that were not taken: another type or other labels than at first, no number, too many series, after
   * `close()`.
   */
  get dropped(): number {
    return this.#dropped;
  }

  increment(metric: string, value = 1, tags?: MetricTags): void {
    if (value >= 0) this.#tell("counter", metric, value, tags);
    else this.#dropped++;
  }

  gauge(metric: string, value: number, tags?: MetricTags): void {
    this.#tell("gauge", metric, value, tags);
  }

  histogram(metric: string, value: number, tags?: MetricTags, sampleRate = 1): void {
    if (isShare(sampleRate)) this.#tell("histogram", metric, value, tags, 1 / sampleRate);
    else this.#dropped++;
  }

  timing(metric: string, value: number, tags?: MetricTags): void {
    this.#tell("histogram", metric, value, tags);
  }

  /** Closes the endpoint and takes the series out of the registry. Idempotent. */
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
      for (const [id, facts] of Object.entries(CATALOGUE)) {
        const reader = READERS[id as MetricId];
        this.#register(facts.exposition, facts, () => reader(this.#views));
      }
    } catch (cause) {
      const name = seriesName(...this.#prefix, METRICS[this.#families.size]?.exposition);
      this.#unregister();
      throw new ConfigError("CONFIG_INVALID", `the registry does not take the metric ${name}`, {
        hint: "Another collector may have registered it: give this one a namespace, subsystem or registry of its own.",
        cause,
      });
    }
  }

  /** By the names they were registered under: a registry may have renamed them. */
  #unregister(): void {
    for (const [name, family] of this.#families) {
      const present = this.#registry.getSingleMetric?.(name) ?? family;
      // A registry that was cleared may have been given to another collector.
      if (present === family) this.#registry.removeSingleMetric(name);
    }
    this.#families.clear();
  }

  #register(
    plainName: string,
    { type, help, labels, aggregator }: Pick<MetricFacts, "type" | "help" | "labels" | "aggregator">,
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

  #tell(type: MetricType, metric: string, value: number, tags: MetricTags | undefined, weight = 1): void {
    const family = Number.isFinite(value) ? this.#familyOf(type, metric, tags) : undefined;
    if (family?.takes(type, tags) !== true || !family.tell(value, tags, weight)) this.#dropped++;
  }

  /** Undefined: it cannot be registered. */
  #familyOf(type: MetricType, metric: string, tags: MetricTags | undefined): Family | undefined {
    if (this.#isClosed || typeof metric !== "string" || metric === "") return undefined;
    const plainName = metricNamed(metric)?.exposition ?? metric;
    const known = this.#families.get(seriesName(...this.#prefix, plainName));
    if (known !== undefined || this.#families.size >= MOST_METRICS) return known;
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
