// One metric of a pull collector: recorded series merged with those read from the caches at scrape time.
import type { MetricTags } from "../../core/collector.ts";
import type { MetricType } from "../catalogue.ts";
import { Histogram, LATENCY_BUCKETS } from "../recording/histogram.ts";
import type { MetricReading, RegisteredMetric, SeriesValue } from "./registry.ts";
import { labelName } from "./registry.ts";

/** Series per metric; further ones are dropped, since each costs the Prometheus server memory for weeks. */
const MAX_SERIES = 2_000;

/** Characters per label value; longer ones are truncated. */
const MAX_LABEL_LENGTH = 1_024;

/** Lone surrogates cannot be encoded in UTF-8; replace them explicitly. */
const labelText = (value: unknown): string =>
  String(value)
    .slice(0, MAX_LABEL_LENGTH)
    .replace(/[\ud800-\udfff]/gu, "\ufffd");

/** A number or histogram with its labels. */
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
  /** Called at every scrape. */
  readonly read?: () => readonly Sample[] | Promise<readonly Sample[]>;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  value: number | Histogram;
}

export class Family implements RegisteredMetric {
  /** Mutable: an OpenMetrics registry renames counters. */
  name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly aggregator: string;
  readonly #options: FamilyOptions;
  readonly #recorded = new Map<string, Series>();

  constructor(options: FamilyOptions) {
    this.name = options.name;
    this.help = options.help;
    this.type = options.type;
    this.aggregator = options.aggregator;
    this.#options = options;
  }

  /** Whether it accepts values of this type with these labels. */
  accepts(type: MetricType, tags: MetricTags | undefined): boolean {
    const names = Object.keys(tags ?? {});
    const { labels } = this.#options;
    return (
      type === this.type &&
      names.length === labels.length &&
      names.every((name) => labels.includes(labelName(name)))
    );
  }

  /** Adds to a counter or histogram, sets a gauge; false if that would exceed the maximum number of series. */
  record(value: number, tags: MetricTags | undefined, weight = 1): boolean {
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
    for (const [id, { labels, value }] of this.#recorded) addTo(merged, { id, labels }, value, type);
    const values = [...merged.values()].flatMap((series) => this.#values(series));
    return { name, help, type, aggregator, values };
  }

  /** Resets recorded series; what the caches have counted is not affected. */
  reset(): void {
    this.#recorded.clear();
  }

  /** A failure must not lose the rest of the page. */
  async #read(): Promise<readonly Sample[]> {
    try {
      return (await this.#options.read?.()) ?? [];
    } catch {
      return [];
    }
  }

  #seriesOf(tags: MetricTags | undefined): Series | undefined {
    const { id, labels } = this.#identify(tags);
    let series = this.#recorded.get(id);
    if (series === undefined && this.#recorded.size < MAX_SERIES) {
      series = { labels, value: this.type === "histogram" ? new Histogram() : 0 };
      this.#recorded.set(id, series);
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

/** Counters and histograms with the same labels are added; for gauges the later value wins. */
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
