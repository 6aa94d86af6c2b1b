// Passes on what caches have counted to collectors that are told of it: in differences, shortly after something happened.

import type { Timer } from "../../core/clock.ts";
import type { MetricTags } from "../../core/collector.ts";
import { CATALOGUE, type MetricFacts } from "../catalogue.ts";
import type { Reporter } from "../recording/recorder.ts";
import type { MetricSource, Sources } from "./source.ts";

/** What is done within so long is told in one call. */
const TELL_AFTER_MS = 10;
/** Durations kept until they are told; of more, each that is kept stands for several. */
const MOST_DURATIONS = 500;

/** Where the figures go. */
export interface Told {
  increment(metric: MetricFacts, value: number, tags: MetricTags | undefined): void;
  gauge(metric: MetricFacts, value: number, tags?: MetricTags): void;
  histogram(metric: MetricFacts, value: number, tags: MetricTags, sampleRate: number): void;
}

interface Duration {
  readonly operation: string;
  readonly seconds: number;
  readonly weight: number;
}

export class Feed implements Reporter {
  readonly #sources: Sources;
  readonly #told: Told;
  /** What was told of each counter so far. */
  readonly #values = new Map<string, number>();
  #durations: Duration[] = [];
  /** Of durations for which there was no room. */
  #lostWeight = 0;
  readonly #leaving = new Map<MetricSource, () => void>();
  #timer: Timer | undefined;
  #clock: MetricSource["clock"] | undefined;

  constructor(sources: Sources, told: Told) {
    this.#sources = sources;
    this.#told = told;
  }

  attach(source: MetricSource): void {
    this.#clock = source.clock;
    this.#leaving.set(source, source.recorder.addReporter(this));
  }

  /** Call it before the source leaves: what it has counted is told. */
  detach(source: MetricSource): void {
    this.#leaving.get(source)?.();
    this.#leaving.delete(source);
    this.tell();
  }

  counted(): void {
    this.#timer ??= this.#clock?.after(TELL_AFTER_MS, () => this.tell());
  }

  timed(operation: string, seconds: number, weight: number): void {
    if (this.#durations.length < MOST_DURATIONS) this.#durations.push({ operation, seconds, weight });
    else this.#lostWeight += weight;
    this.counted();
  }

  marked(): void {
    // A store that cannot tell its state is told of where it is used.
    this.#tellGauges().catch(() => {});
  }

  tell(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const { recorder } of this.#sources) recorder.reported();
    for (const { id, metric, tags, value } of this.#sources.totals().counters()) {
      const more = value - (this.#values.get(id) ?? 0);
      if (more <= 0) continue;
      this.#values.set(id, value);
      this.#told.increment(metric, more, tags);
    }
    this.#tellDurations();
  }

  #tellDurations(): void {
    const [durations, lost] = [this.#durations, this.#lostWeight];
    this.#durations = [];
    this.#lostWeight = 0;
    const kept = durations.reduce((sum, { weight }) => sum + weight, 0);
    const factor = lost === 0 ? 1 : (kept + lost) / kept;
    for (const { operation, seconds, weight } of durations) {
      this.#told.histogram(CATALOGUE.operationDuration, seconds, { operation }, 1 / (weight * factor));
    }
  }

  async #tellGauges(): Promise<void> {
    const gauges = this.#sources.gauges();
    if (gauges === undefined) return;
    const { circuitBreakerOpen, memoryUsage, poolUtilization, poolWaiting } = gauges;
    this.#told.gauge(CATALOGUE.hitRate, this.#sources.totals().hitRate());
    this.#told.gauge(CATALOGUE.memoryUsage, memoryUsage);
    this.#told.gauge(CATALOGUE.circuitBreakerOpen, circuitBreakerOpen);
    this.#told.gauge(CATALOGUE.poolUtilization, poolUtilization);
    this.#told.gauge(CATALOGUE.poolWaiting, poolWaiting);
    const usage = await this.#sources.usage();
    if (usage === undefined) return;
    this.#told.gauge(CATALOGUE.sizeBytes, usage.bytes);
    this.#told.gauge(CATALOGUE.keysCount, usage.keys);
  }
}
