// When an alert fires: on crossing, after it has held for long enough, again after a while, and once on the way back.

/** What became of an alert at a look. */
export type Crossing = "fired" | "repeated" | "resolved";

export type AlertStatus = "inactive" | "pending" | "firing";

/** A timer may run a moment early; without this an alert would then be a whole look late. */
const TIMER_SLACK_MS = 10;

export interface ConditionTerms {
  /** How long the condition must have been seen to hold. */
  readonly forMs: number;
  /** Infinity: never again. */
  readonly repeatMs: number;
}

export class Condition {
  readonly #terms: ConditionTerms;
  #status: AlertStatus = "inactive";
  #since = 0;
  #seenAt = 0;
  #toldAt = 0;
  #repeats = 0;

  constructor(terms: ConditionTerms) {
    this.#terms = terms;
  }

  get status(): AlertStatus {
    return this.#status;
  }

  /** How often the present firing has been told again. */
  get repeats(): number {
    return this.#repeats;
  }

  /**
   * `holds` undefined: there is no data. Then nothing is known to have changed: what fires goes on firing, without
   * being repeated, and what is about to fire begins anew only after as long without data as it must hold. A cache that is
   * read now and then would otherwise never fire.
   */
  judge(holds: boolean | undefined, now: number): Crossing | undefined {
    if (holds === undefined) {
      const isForgotten = now - this.#seenAt > this.#terms.forMs;
      if (this.#status === "pending" && isForgotten) this.#status = "inactive";
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
    if (now - this.#since < this.#terms.forMs - TIMER_SLACK_MS) return undefined;
    this.#status = "firing";
    this.#toldAt = now;
    this.#repeats = 0;
    return "fired";
  }

  #repeat(now: number): Crossing | undefined {
    if (now - this.#toldAt < this.#terms.repeatMs - TIMER_SLACK_MS) return undefined;
    this.#toldAt = now;
    this.#repeats++;
    return "repeated";
  }
}
