// OtelCollector: passes measurements to the application's OpenTelemetry meter.
import { requireOptions } from "../../core/arguments.ts";
import { type Collector, type MetricTags, type SendingCollector, sendsTo } from "../../core/collector.ts";
import { VERSION } from "../../version.ts";
import { type MetricType, metricNamed } from "../catalogue.ts";
import { LATENCY_BUCKETS } from "../recording/histogram.ts";
import { type OtelMeter, type OtelMeterProvider, otelApi } from "./otel-api.ts";

export interface OtelCollectorOptions {
  /** Default: the one registered by the application. */
  readonly meterProvider?: OtelMeterProvider;
}

/** Metric names derived from data would grow without bound. */
const MAX_INSTRUMENTS = 1_000;

interface Instrument {
  readonly type: MetricType;
  record(value: number, tags: MetricTags | undefined): void;
}

const UNITS = { seconds: "s", bytes: "By" } as const;

/**
 * OpenTelemetry metrics. Needs the package `@opentelemetry/api`.
 *
 * @example
 * ```ts
 * const cache = new XCache({ metrics: new CacheMetrics([new OtelCollector()]) });
 * cache.startMetricsCollection();
 * ```
 */
export class OtelCollector implements Collector {
  /** @internal */
  readonly [sendsTo]: SendingCollector[typeof sendsTo];
  readonly #meter: OtelMeter;
  readonly #instruments = new Map<string, Instrument>();
  #dropped = 0;

  /** Throws MissingPeerError without the package @opentelemetry/api. */
  constructor(options: OtelCollectorOptions = {}) {
    requireOptions(options, ["meterProvider"]);
    const provider = options.meterProvider ?? otelApi("OtelCollector").metrics;
    this[sendsTo] = { place: provider, name: "the same OpenTelemetry meter provider" };
    this.#meter = provider.getMeter("xcache", VERSION);
  }

  /** Rejected measurements: type differs from the first one, not a number, too many names. */
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

  /** OpenTelemetry has no weights: a sampled observation is recorded once. */
  histogram(metric: string, value: number, tags?: MetricTags): void {
    this.#record("histogram", metric, value, tags);
  }

  timing(metric: string, value: number, tags?: MetricTags): void {
    this.#record("histogram", metric, value, tags, "seconds");
  }

  #record(
    type: MetricType,
    metric: string,
    value: number,
    tags: MetricTags | undefined,
    unit?: "seconds",
  ): void {
    const instrument = Number.isFinite(value) ? this.#instrument(type, metric, unit) : undefined;
    if (instrument?.type === type) instrument.record(value, tags);
    else this.#dropped++;
  }

  #instrument(type: MetricType, metric: string, unit?: "seconds"): Instrument | undefined {
    const known = this.#instruments.get(metric);
    if (known !== undefined || this.#instruments.size >= MAX_INSTRUMENTS) return known;
    const made = this.#make(type, metric, unit);
    this.#instruments.set(metric, made);
    return made;
  }

  #make(type: MetricType, metric: string, given?: "seconds"): Instrument {
    const spec = metricNamed(metric);
    const unit = spec?.unit ?? given;
    const options = {
      ...(spec !== undefined && { description: spec.help }),
      ...(unit !== undefined && { unit: UNITS[unit] }),
      ...(type === "histogram" && { advice: { explicitBucketBoundaries: [...LATENCY_BUCKETS] } }),
    };
    if (type === "counter") {
      const counter = this.#meter.createCounter(metric, options);
      return { type, record: (value, tags) => counter.add(value, tags) };
    }
    const recorded =
      type === "gauge"
        ? this.#meter.createGauge(metric, options)
        : this.#meter.createHistogram(metric, options);
    return { type, record: (value, tags) => recorded.record(value, tags) };
  }
}
