// Sums over the caches that report to one CacheMetrics, including removed ones.
import type { MetricTags } from "../../core/collector.ts";
import { CATALOGUE, type MetricSpec } from "../catalogue.ts";
import { ErrorCounts } from "../recording/error-count.ts";
import { Histogram } from "../recording/histogram.ts";
import type { Recorder } from "../recording/recorder.ts";

const COUNTS = ["hits", "misses", "storeHits", "sets", "deletes", "invalidations", "evictions"] as const;
type CountName = (typeof COUNTS)[number];

/** One counter with its labels; `id` is unique. */
export interface CountedSeries {
  readonly id: string;
  readonly metric: MetricSpec;
  readonly tags: MetricTags | undefined;
  readonly value: number;
}

const HIT: MetricTags = { result: "hit" };
const MISS: MetricTags = { result: "miss" };

/** The count behind each series. */
const SERIES: readonly (readonly [CountName, MetricSpec, MetricTags | undefined])[] = [
  ["hits", CATALOGUE.gets, HIT],
  ["misses", CATALOGUE.gets, MISS],
  ["hits", CATALOGUE.hits, undefined],
  ["misses", CATALOGUE.misses, undefined],
  ["storeHits", CATALOGUE.storeHits, undefined],
  ["sets", CATALOGUE.sets, undefined],
  ["deletes", CATALOGUE.deletes, undefined],
  ["invalidations", CATALOGUE.invalidations, undefined],
  ["evictions", CATALOGUE.evictions, undefined],
];

export class Totals {
  readonly durations = new Map<string, Histogram>();
  readonly #counts: Record<CountName, number> = {
    hits: 0,
    misses: 0,
    storeHits: 0,
    sets: 0,
    deletes: 0,
    invalidations: 0,
    evictions: 0,
  };
  readonly #errors = new ErrorCounts();

  /** A `factor` of -1 subtracts what was added before. */
  add(recorder: Recorder | Totals, factor: 1 | -1 = 1): void {
    const counts = recorder instanceof Totals ? recorder.#counts : recorder;
    for (const name of COUNTS) this.#counts[name] += factor * counts[name];
    const errors = recorder instanceof Totals ? recorder.#errors : recorder.errorCounts;
    for (const [, { tags, count }] of errors) this.#errors.add(tags, factor * count);
    if (recorder instanceof Totals) {
      for (const [operation, histogram] of recorder.durations) this.#add(operation, histogram, factor);
    } else {
      for (const [operation, { latency }] of recorder.operations) this.#add(operation, latency, factor);
    }
  }

  /** 0 before the first read. */
  hitRate(): number {
    const { hits, misses } = this.#counts;
    return hits + misses === 0 ? 0 : hits / (hits + misses);
  }

  counters(): CountedSeries[] {
    const series = SERIES.map(([name, metric, tags], at) => ({
      id: String(at),
      metric,
      tags,
      value: this.#counts[name],
    }));
    const errors = [...this.#errors].map(([id, { tags, count }]) => ({
      id,
      metric: CATALOGUE.errors,
      tags,
      value: count,
    }));
    return [...series, ...errors];
  }

  #add(operation: string, histogram: Histogram, factor: 1 | -1): void {
    let sum = this.durations.get(operation);
    if (sum === undefined) {
      sum = new Histogram();
      this.durations.set(operation, sum);
    }
    sum.merge(histogram, factor);
  }
}
