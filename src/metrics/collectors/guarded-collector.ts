// Wraps a collector that may throw, reject or hang: lost measurements are counted, and nothing else breaks.
import type { Collector, MetricTags } from "../../core/collector.ts";

/** Unsettled calls per collector; further calls are dropped until some settle. */
const MAX_PENDING = 1_000;

export type FailureReason = "thrown" | "rejected" | "hung";

/** Measurements one collector lost. */
export interface CollectorFailures extends Readonly<Record<FailureReason, number>> {
  /** The name of its class. */
  readonly collector: string;
}

type Method = keyof Collector;

export class GuardedCollector {
  readonly collector: Collector;
  readonly name: string;
  readonly #failures: Record<FailureReason, number> = { thrown: 0, rejected: 0, hung: 0 };
  readonly #onFailure: () => void;
  #pending = 0;

  constructor(collector: Collector, onFailure: () => void) {
    this.collector = collector;
    this.name = nameOf(collector);
    this.#onFailure = onFailure;
  }

  get failures(): CollectorFailures {
    return { collector: this.name, ...this.#failures };
  }

  call(method: Method, metric: string, value: number, tags?: MetricTags, sampleRate?: number): void {
    if (this.#pending >= MAX_PENDING) {
      this.#count("hung");
      return;
    }
    try {
      const result: unknown =
        sampleRate === undefined
          ? this.collector[method](metric, value, tags)
          : this.collector.histogram(metric, value, tags, sampleRate);
      if (isThenable(result)) this.#await(result);
    } catch {
      this.#count("thrown");
    }
  }

  #await(result: PromiseLike<unknown>): void {
    this.#pending++;
    // A user-defined thenable may call back twice.
    let isOpen = true;
    const settled = (): boolean => {
      const wasOpen = isOpen;
      if (wasOpen) this.#pending--;
      isOpen = false;
      return wasOpen;
    };
    result.then(settled, () => {
      if (settled()) this.#count("rejected");
    });
  }

  #count(reason: FailureReason): void {
    this.#failures[reason]++;
    this.#onFailure();
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" && value !== null && typeof (value as PromiseLike<unknown>).then === "function"
  );
}

function nameOf(collector: Collector): string {
  try {
    const name: unknown = collector.constructor?.name;
    return typeof name === "string" && /^[\w$]{1,64}$/.test(name) ? name : "collector";
  } catch {
    return "collector";
  }
}
