// The caches that report to one CacheMetrics, and how a pull collector reads them.
import type { Clock } from "../../core/clock.ts";
import type { Collector } from "../../core/collector.ts";
import type { MaybePromise, NamespaceUsage } from "../../core/namespace.ts";
import type { Recorder, StoreState } from "../recording/recorder.ts";
import { type CountedSeries, Totals } from "./totals.ts";

export interface MetricSource {
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Such as `memory`. */
  readonly backend: string;
  /** Sources of the same namespace count the same entries. */
  readonly namespace: object;
  storeState(): StoreState & { readonly poolWaiting: number };
  usage(): MaybePromise<NamespaceUsage>;
}

/** How long a usage count is reused, so that frequent scrapes do not load the store. */
const USAGE_AGE_MS = 5_000;

interface KnownUsage {
  readonly at: number;
  readonly usage: Promise<NamespaceUsage | undefined>;
}

export interface StoreGauges {
  readonly circuitBreakerOpen: number;
  readonly poolUtilization: number;
  readonly poolWaiting: number;
  readonly memoryUsage: number;
}

export class Sources {
  readonly #present = new Set<MetricSource>();
  /** The counts of each removed source when it was removed, since it may be added again. */
  readonly #removed = new WeakMap<Recorder, Totals>();
  readonly #removedTotals = new Totals();
  readonly #usages = new WeakMap<object, KnownUsage>();

  get size(): number {
    return this.#present.size;
  }

  [Symbol.iterator](): IterableIterator<MetricSource> {
    return this.#present.values();
  }

  add(source: MetricSource): void {
    const before = this.#removed.get(source.recorder);
    if (before !== undefined) this.#removedTotals.add(before, -1);
    this.#removed.delete(source.recorder);
    this.#present.add(source);
  }

  remove(source: MetricSource): void {
    if (!this.#present.delete(source)) return;
    const counted = new Totals();
    counted.add(source.recorder);
    this.#removed.set(source.recorder, counted);
    this.#removedTotals.add(counted);
  }

  totals(): Totals {
    const totals = new Totals();
    totals.add(this.#removedTotals);
    for (const { recorder } of this.#present) totals.add(recorder);
    return totals;
  }

  backends(): readonly string[] {
    return [...new Set([...this.#present].map(({ backend }) => backend))];
  }

  /** The worst value over all stores; undefined without any. */
  gauges(): StoreGauges | undefined {
    const states = [...this.#present].map((source) => source.storeState());
    if (states.length === 0) return undefined;
    const most = (values: readonly number[]): number => Math.max(...values);
    return {
      circuitBreakerOpen: states.some(({ circuitBreakerOpen }) => circuitBreakerOpen) ? 1 : 0,
      poolUtilization: most(states.map(({ poolUtilization }) => poolUtilization)),
      poolWaiting: most(states.map(({ poolWaiting }) => poolWaiting)),
      memoryUsage: most(states.map(({ memoryUsage }) => memoryUsage)),
    };
  }

  /** Entries and bytes of all sources; undefined if a store fails to report: a partial sum would look like a loss. */
  async usage(): Promise<NamespaceUsage | undefined> {
    const byNamespace = new Map([...this.#present].map((source) => [source.namespace, source]));
    if (byNamespace.size === 0) return undefined;
    const usages = await Promise.all([...byNamespace.values()].map((source) => this.#usageOf(source)));
    const sum = { keys: 0, bytes: 0, approximate: false };
    for (const usage of usages) {
      if (usage === undefined) return undefined;
      sum.keys += usage.keys;
      sum.bytes += usage.bytes;
      sum.approximate ||= usage.approximate;
    }
    return sum;
  }

  #usageOf(source: MetricSource): Promise<NamespaceUsage | undefined> {
    const now = source.clock.now();
    let known = this.#usages.get(source.namespace);
    if (known === undefined || now - known.at >= USAGE_AGE_MS) {
      known = { at: now, usage: readUsage(source) };
      this.#usages.set(source.namespace, known);
    }
    return known.usage;
  }
}

async function readUsage(source: MetricSource): Promise<NamespaceUsage | undefined> {
  try {
    return await source.usage();
  } catch {
    return undefined;
  }
}

export interface MetricsView {
  readonly sources: Sources;
  /** Measurements lost by collectors, as counters. */
  failed(): readonly CountedSeries[];
}

/** A symbol, so that it cannot clash with a method of a user's collector. */
export const readFrom = Symbol("readFrom");

export interface ReadingCollector extends Collector {
  [readFrom](view: MetricsView): void;
}

export function isReading(collector: Collector): collector is ReadingCollector {
  return typeof (collector as Partial<ReadingCollector>)[readFrom] === "function";
}
