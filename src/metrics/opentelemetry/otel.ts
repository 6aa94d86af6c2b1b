// OtelCollector: hands what is measured to the OpenTelemetry meter of the application.
import { requireOptions } from "../../core/arguments.ts";
import type { Collector, MetricTags } from "../../core/collector.ts";
import { VERSION } from "../../version.ts";
import { type MetricType, metricNamed } from "../catalogue.ts";
import { LATENCY_BUCKETS } from "../recording/histogram.ts";
import { type OtelMeter, type OtelMeterProvider, otelApi } from "./otel-api.ts";

export interface OtelCollectorOptions {
  /** Default: the one that the application has registered. */
  readonly meterProvider?: OtelMeterProvider;
}

/** Instruments; a name made from data would grow without end. */
const MOST_INSTRUMENTS = 1_000;

interface Instrument {
  readonly type: MetricType;
  record(value: number, tags: MetricTags | undefined): void;
}

const UNITS = { seconds: "s", bytes: "By" } as const;

export class OtelCollector implements Collector {
  readonly #meter: OtelMeter;
  readonly #instruments = new Map<string, Instrument>();
  #dropped = 0;

  /** Throws MissingPeerError without the package @opentelemetry/api. */
  constructor(options: OtelCollectorOptions = {}) {
    requireOptions(options, ["meterProvider"]);
    const provider = options.meterProvider ?? otelApi("OtelCollector").metrics;
    this.#meter = provider.getMeter("xcache", VERSION);
  }

  /** Measurements that were not taken: of another type than at first, no number, too many names. */
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

  /** OpenTelemetry has no weights: an observation that stands for others is recorded once. */
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
    if (known !== undefined || this.#instruments.size >= MOST_INSTRUMENTS) return known;
    const made = this.#make(type, metric, unit);
    this.#instruments.set(metric, made);
    return made;
  }

  #make(type: MetricType, metric: string, given?: "seconds"): Instrument {
    const facts = metricNamed(metric);
    const unit = facts?.unit ?? given;
    const options = {
      ...(facts !== undefined && { description: facts.help }),
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
