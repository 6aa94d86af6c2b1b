// When an alert fires: on crossing its threshold for long enough, again after a while, and once when it resolves.

const COMPARISONS = {
  less_than: { words: "less than", holds: (value: number, threshold: number) => value < threshold },
  greater_than: { words: "greater than", holds: (value: number, threshold: number) => value > threshold },
  less_or_equal: { words: "at most", holds: (value: number, threshold: number) => value <= threshold },
  greater_or_equal: { words: "at least", holds: (value: number, threshold: number) => value >= threshold },
  equal: { words: "equal to", holds: (value: number, threshold: number) => value === threshold },
  not_equal: { words: "not equal to", holds: (value: number, threshold: number) => value !== threshold },
} as const;

/** How an alert compares its metric with its threshold. */
export type AlertComparison = keyof typeof COMPARISONS;

export const COMPARISON_IDS = Object.keys(COMPARISONS) as readonly AlertComparison[];

export const compares = (value: number, comparison: AlertComparison, threshold: number): boolean =>
  COMPARISONS[comparison].holds(value, threshold);

/** Such as "less than" in "0.62 is less than 0.7". */
export const wordsOf = (comparison: AlertComparison): string => COMPARISONS[comparison].words;

/** What a check changed. */
export type Crossing = "fired" | "repeated" | "resolved";

export type AlertStatus = "inactive" | "pending" | "firing";

/** A timer may fire slightly early; without this tolerance an alert would then be a whole interval late. */
const TIMER_SLACK_MS = 10;

export interface ConditionOptions {
  /** How long the condition must hold before the alert fires. */
  readonly forMs: number;
  /** Infinity: never again. */
  readonly repeatMs: number;
}

export class Condition {
  readonly #options: ConditionOptions;
  #status: AlertStatus = "inactive";
  #since = 0;
  #seenAt = 0;
  #notifiedAt = 0;
  #repeats = 0;

  constructor(options: ConditionOptions) {
    this.#options = options;
  }

  get status(): AlertStatus {
    return this.#status;
  }

  /** How often the current firing has been repeated. */
  get repeats(): number {
    return this.#repeats;
  }

  /**
   * `holds` undefined: no data. A firing alert then stays firing but is not repeated, and a pending one is reset only
   * after `forMs` without data: otherwise an alert on a cache that is rarely read would never fire.
   */
  evaluate(holds: boolean | undefined, now: number): Crossing | undefined {
    if (holds === undefined) {
      const hasLapsed = now - this.#seenAt > this.#options.forMs;
      if (this.#status === "pending" && hasLapsed) this.#status = "inactive";
      return undefined;
    }
    if (!holds) {
      const wasFiring = this.#status === "firing";
      this.#status = "inactive";
      return wasFiring ? "resolved" : undefined;
    }
    this.#seenAt = now;
    return this.#status === "firing" ? this.#repeat(now) : this.#fire(now);
  }

  #fire(now: number): Crossing | undefined {
    if (this.#status === "inactive") {
      this.#status = "pending";
      this.#since = now;
    }
    if (now - this.#since < this.#options.forMs - TIMER_SLACK_MS) return undefined;
    this.#status = "firing";
    this.#notifiedAt = now;
    this.#repeats = 0;
    return "fired";
  }

  #repeat(now: number): Crossing | undefined {
    if (now - this.#notifiedAt < this.#options.repeatMs - TIMER_SLACK_MS) return undefined;
    this.#notifiedAt = now;
    this.#repeats++;
    return "repeated";
  }
}
