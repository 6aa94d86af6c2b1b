// Feeds collectors with what caches have counted since the last time, shortly after something happened.
import type { Timer } from "../../core/clock.ts";
import type { MetricTags } from "../../core/collector.ts";
import { CATALOGUE, type MetricSpec } from "../catalogue.ts";
import type { Reporter } from "../recording/recorder.ts";
import type { MetricSource, Sources } from "./source.ts";

/** Counts within this time are passed on together. */
const FLUSH_AFTER_MS = 10;
/** Durations buffered until the next flush; beyond that the buffered ones are weighted higher. */
const MAX_DURATIONS = 500;

/** Receives the measurements. */
export interface FeedTarget {
  increment(metric: MetricSpec, value: number, tags: MetricTags | undefined): void;
  gauge(metric: MetricSpec, value: number, tags?: MetricTags): void;
  histogram(metric: MetricSpec, value: number, tags: MetricTags, sampleRate: number): void;
}

interface Duration {
  readonly operation: string;
  readonly seconds: number;
  readonly weight: number;
}

export class Feed implements Reporter {
  readonly #sources: Sources;
  readonly #target: FeedTarget;
  /** The value of each counter at the last flush. */
  readonly #values = new Map<string, number>();
  #durations: Duration[] = [];
  /** Total weight of the durations that did not fit the buffer. */
  #lostWeight = 0;
  readonly #detachers = new Map<MetricSource, () => void>();
  #timer: Timer | undefined;
  #clock: MetricSource["clock"] | undefined;

  constructor(sources: Sources, target: FeedTarget) {
    this.#sources = sources;
    this.#target = target;
  }

  attach(source: MetricSource): void {
    this.#clock = source.clock;
    this.#detachers.set(source, source.recorder.addReporter(this));
  }

  /** Call before the source is removed, so that its last counts are passed on. */
  detach(source: MetricSource): void {
    this.#detachers.get(source)?.();
    this.#detachers.delete(source);
    this.flush();
  }

  counted(): void {
    this.#timer ??= this.#clock?.after(FLUSH_AFTER_MS, () => this.flush());
  }

  timed(operation: string, seconds: number, weight: number): void {
    if (this.#durations.length < MAX_DURATIONS) this.#durations.push({ operation, seconds, weight });
    else this.#lostWeight += weight;
    this.counted();
  }

  marked(): void {
    // Store failures are reported by the operations themselves.
    this.#sendGauges().catch(() => {});
  }

  flush(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const { recorder } of this.#sources) recorder.reported();
    for (const { id, metric, tags, value } of this.#sources.totals().counters()) {
      const more = value - (this.#values.get(id) ?? 0);
      if (more <= 0) continue;
      this.#values.set(id, value);
      this.#target.increment(metric, more, tags);
    }
    this.#flushDurations();
  }

  #flushDurations(): void {
    const [durations, lost] = [this.#durations, this.#lostWeight];
    this.#durations = [];
    this.#lostWeight = 0;
    const kept = durations.reduce((sum, { weight }) => sum + weight, 0);
    const factor = lost === 0 ? 1 : (kept + lost) / kept;
    for (const { operation, seconds, weight } of durations) {
      this.#target.histogram(CATALOGUE.operationDuration, seconds, { operation }, 1 / (weight * factor));
    }
  }

  async #sendGauges(): Promise<void> {
    const gauges = this.#sources.gauges();
    if (gauges === undefined) return;
    const { circuitBreakerOpen, memoryUsage, poolUtilization, poolWaiting } = gauges;
    this.#target.gauge(CATALOGUE.hitRate, this.#sources.totals().hitRate());
    this.#target.gauge(CATALOGUE.memoryUsage, memoryUsage);
    this.#target.gauge(CATALOGUE.circuitBreakerOpen, circuitBreakerOpen);
    this.#target.gauge(CATALOGUE.poolUtilization, poolUtilization);
    this.#target.gauge(CATALOGUE.poolWaiting, poolWaiting);
    const usage = await this.#sources.usage();
    if (usage === undefined) return;
    this.#target.gauge(CATALOGUE.sizeBytes, usage.bytes);
    this.#target.gauge(CATALOGUE.keysCount, usage.keys);
  }
}
