// One metric of a pull collector: series that were told, added to those that are read when it is asked for.
import type { MetricTags } from "../../core/collector.ts";
import type { MetricType } from "../catalogue.ts";
import { Histogram, LATENCY_BUCKETS } from "../recording/histogram.ts";
import type { MetricReading, RegisteredMetric, SeriesValue } from "./registry.ts";
import { labelName } from "./series-name.ts";

/** Series of one metric; more are not taken, for each costs the server memory for weeks. */
const MOST_SERIES = 2_000;

/** Characters of a label's value; the rest is cut off, for a server keeps it as long. */
const LONGEST_LABEL = 1_024;

/** Half a surrogate pair cannot be sent: all of them would arrive as the same character. */
const labelText = (value: unknown): string =>
  String(value)
    .slice(0, LONGEST_LABEL)
    .replace(/\p{Surrogate}/gu, "\ufffd");

/** A value with its labels: a number, or a distribution. */
export interface Sample {
  readonly tags: MetricTags | undefined;
  readonly value: number | Histogram;
}

export interface FamilyOptions {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly labels: readonly string[];
  readonly aggregator: string;
  readonly constantLabels: MetricTags;
  /** What is read at each asking. */
  readonly read?: () => readonly Sample[] | Promise<readonly Sample[]>;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  value: number | Histogram;
}

export class Family implements RegisteredMetric {
  /** Not read-only: a registry that speaks OpenMetrics renames counters. */
  name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly aggregator: string;
  readonly #options: FamilyOptions;
  readonly #told = new Map<string, Series>();

  constructor(options: FamilyOptions) {
    this.name = options.name;
    this.help = options.help;
    this.type = options.type;
    this.aggregator = options.aggregator;
    this.#options = options;
  }

  /** Whether it takes values of this type with these labels. */
  takes(type: MetricType, tags: MetricTags | undefined): boolean {
    const names = Object.keys(tags ?? {});
    const { labels } = this.#options;
    return (
      type === this.type &&
      names.length === labels.length &&
      names.every((name) => labels.includes(labelName(name)))
    );
  }

  /** Adds to a counter or a distribution, sets a gauge; false when there is no room for one more series. */
  tell(value: number, tags: MetricTags | undefined, weight = 1): boolean {
    const series = this.#seriesOf(tags);
    if (series === undefined) return false;
    if (series.value instanceof Histogram) series.value.add(value, weight);
    else series.value = this.type === "counter" ? series.value + value : value;
    return true;
  }

  async get(): Promise<MetricReading> {
    const { name, help, type, aggregator } = this;
    const merged = new Map<string, Series>();
    for (const sample of await this.#read()) addTo(merged, this.#identify(sample.tags), sample.value, type);
    for (const [id, { labels, value }] of this.#told) addTo(merged, { id, labels }, value, type);
    const values = [...merged.values()].flatMap((series) => this.#values(series));
    return { name, help, type, aggregator, values };
  }

  /** Forgets what was told; what caches have counted is theirs. */
  reset(): void {
    this.#told.clear();
  }

  /** A failure here must not cost the user the rest of the page. */
  async #read(): Promise<readonly Sample[]> {
    try {
      return (await this.#options.read?.()) ?? [];
    } catch {
      return [];
    }
  }

  #seriesOf(tags: MetricTags | undefined): Series | undefined {
    const { id, labels } = this.#identify(tags);
    let series = this.#told.get(id);
    if (series === undefined && this.#told.size < MOST_SERIES) {
      series = { labels, value: this.type === "histogram" ? new Histogram() : 0 };
      this.#told.set(id, series);
    }
    return series;
  }

  #identify(tags: MetricTags | undefined): { id: string; labels: Record<string, string> } {
    const given = new Map(
      Object.entries(tags ?? {}).map(([name, value]) => [labelName(name), labelText(value)]),
    );
    const labels: Record<string, string> = { ...this.#options.constantLabels };
    for (const name of this.#options.labels) labels[name] = given.get(name) ?? "";
    return { id: JSON.stringify(labels), labels };
  }

  #values({ labels, value }: Series): SeriesValue[] {
    if (!(value instanceof Histogram)) return [{ labels, value }];
    const { name } = this;
    let below = 0;
    const buckets = LATENCY_BUCKETS.map((bound, at) => {
      below += value.counts[at] as number;
      return { metricName: `${name}_bucket`, labels: { ...labels, le: bound }, value: below };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: value.count },
      { metricName: `${name}_sum`, labels, value: value.sum },
      { metricName: `${name}_count`, labels, value: value.count },
    ];
  }
}

/** Counts and distributions with the same labels are added, of gauges the later one stands. */
function addTo(
  merged: Map<string, Series>,
  { id, labels }: { id: string; labels: Readonly<Record<string, string>> },
  value: number | Histogram,
  type: MetricType,
): void {
  const present = merged.get(id);
  if (value instanceof Histogram) {
    const sum = present?.value instanceof Histogram ? present.value : new Histogram();
    sum.merge(value);
    merged.set(id, { labels, value: sum });
  } else if (type === "counter" && typeof present?.value === "number") {
    present.value += value;
  } else merged.set(id, { labels, value });
}
