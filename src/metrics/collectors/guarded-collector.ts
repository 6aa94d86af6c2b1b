// A collector that may throw, reject or hang, made harmless: what it does not take is counted.
import type { Collector, MetricTags } from "../../core/collector.ts";

/** Calls of one collector that may be unanswered; more are not made until some of them are. */
const MOST_PENDING = 1_000;

export type FailureReason = "thrown" | "rejected" | "hung";

/** What one collector did not take. */
export interface CollectorFailures extends Readonly<Record<FailureReason, number>> {
  /** The name of its class. */
  readonly collector: string;
}

type Method = keyof Collector;

export class GuardedCollector {
  readonly collector: Collector;
  readonly name: string;
  readonly #failures: Record<FailureReason, number> = { thrown: 0, rejected: 0, hung: 0 };
  readonly #failed: () => void;
  #pending = 0;

  constructor(collector: Collector, failed: () => void) {
    this.collector = collector;
    this.name = nameOf(collector);
    this.#failed = failed;
  }

  get failures(): CollectorFailures {
    return { collector: this.name, ...this.#failures };
  }

  call(method: Method, metric: string, value: number, tags?: MetricTags, sampleRate?: number): void {
    if (this.#pending >= MOST_PENDING) {
      this.#count("hung");
      return;
    }
    try {
      const answer: unknown =
        sampleRate === undefined
          ? this.collector[method](metric, value, tags)
          : this.collector.histogram(metric, value, tags, sampleRate);
      if (isThenable(answer)) this.#await(answer);
    } catch {
      this.#count("thrown");
    }
  }

  #await(answer: PromiseLike<unknown>): void {
    this.#pending++;
    // A thenable of the user's own may call back twice.
    let isOpen = true;
    const settled = (): boolean => {
      const wasOpen = isOpen;
      if (wasOpen) this.#pending--;
      isOpen = false;
      return wasOpen;
    };
    answer.then(settled, () => {
      if (settled()) this.#count("rejected");
    });
  }

  #count(reason: FailureReason): void {
    this.#failures[reason]++;
    this.#failed();
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
