// A cache as its metrics see it, and the caches that report to one CacheMetrics.
import type { Clock } from "../../core/clock.ts";
import type { MaybePromise, NamespaceUsage } from "../../core/namespace.ts";
import type { Recorder, StoreFacts } from "../recording/recorder.ts";
import { Totals } from "./totals.ts";

export interface MetricSource {
  readonly recorder: Recorder;
  readonly clock: Clock;
  /** Such as `memory`. */
  readonly backend: string;
  /** Sources with the same one count the same entries. */
  readonly place: object;
  facts(): StoreFacts & { readonly poolWaiting: number };
  usage(): MaybePromise<NamespaceUsage>;
}

/** How long a count of the entries is used: a scrape a second should not keep the store busy. */
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
  /** What the sources that left have counted, each as of when it left: it may come back. */
  readonly #left = new WeakMap<Recorder, Totals>();
  readonly #gone = new Totals();
  readonly #usages = new WeakMap<object, KnownUsage>();

  get size(): number {
    return this.#present.size;
  }

  [Symbol.iterator](): IterableIterator<MetricSource> {
    return this.#present.values();
  }

  add(source: MetricSource): void {
    const before = this.#left.get(source.recorder);
    if (before !== undefined) this.#gone.add(before, -1);
    this.#left.delete(source.recorder);
    this.#present.add(source);
  }

  remove(source: MetricSource): void {
    if (!this.#present.delete(source)) return;
    const counted = new Totals();
    counted.add(source.recorder);
    this.#left.set(source.recorder, counted);
    this.#gone.add(counted);
  }

  totals(): Totals {
    const totals = new Totals();
    totals.add(this.#gone);
    for (const { recorder } of this.#present) totals.add(recorder);
    return totals;
  }

  backends(): readonly string[] {
    return [...new Set([...this.#present].map(({ backend }) => backend))];
  }

  /** The worst of the stores; undefined without any. */
  gauges(): StoreGauges | undefined {
    const facts = [...this.#present].map((source) => source.facts());
    if (facts.length === 0) return undefined;
    const most = (values: readonly number[]): number => Math.max(...values);
    return {
      circuitBreakerOpen: facts.some(({ circuitBreakerOpen }) => circuitBreakerOpen) ? 1 : 0,
      poolUtilization: most(facts.map(({ poolUtilization }) => poolUtilization)),
      poolWaiting: most(facts.map(({ poolWaiting }) => poolWaiting)),
      memoryUsage: most(facts.map(({ memoryUsage }) => memoryUsage)),
    };
  }

  /** Entries and bytes of all sources; undefined when a store does not tell: half a sum would look like a loss. */
  async usage(): Promise<NamespaceUsage | undefined> {
    const places = new Map([...this.#present].map((source) => [source.place, source]));
    if (places.size === 0) return undefined;
    const usages = await Promise.all([...places.values()].map((source) => this.#usageOf(source)));
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
    let known = this.#usages.get(source.place);
    if (known === undefined || now - known.at >= USAGE_AGE_MS) {
      known = { at: now, usage: ask(source) };
      this.#usages.set(source.place, known);
    }
    return known.usage;
  }
}

async function ask(source: MetricSource): Promise<NamespaceUsage | undefined> {
  try {
    return await source.usage();
  } catch {
    return undefined;
  }
}
