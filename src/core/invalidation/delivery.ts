// Keeps trying to deliver the pending invalidations of a store, whether or not anyone calls it.
import type { Clock, Timer } from "../clock.ts";
import type { Outbox } from "./outbox.ts";

/** How long after a failed attempt the next one begins; a new connection begins one at once. */
const EVERY_MS = 500;

export class Delivery {
  readonly #clock: Clock;
  readonly #outbox: Outbox;
  readonly #delivered: () => void;
  #timer: Timer | undefined;
  #isRunning = false;
  /** The store came back during an attempt that began before. */
  #isRequested = false;
  #isStopped = false;

  /** `delivered`: the store has acknowledged a pending invalidation, so it works. */
  constructor(clock: Clock, outbox: Outbox, delivered: () => void) {
    this.#clock = clock;
    this.#outbox = outbox;
    this.#delivered = delivered;
  }

  /** Something is pending: the first attempt is made soon. */
  later(): void {
    if (this.#isStopped || this.#isRunning || this.#timer !== undefined || this.#outbox.size === 0) return;
    this.#timer = this.#clock.after(EVERY_MS, () => this.now());
  }

  /** The store can be reached. */
  now(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isStopped || this.#outbox.size === 0) return;
    this.#isRequested = this.#isRunning;
    if (this.#isRunning) return;
    this.#isRunning = true;
    const ended = (isDelivered: boolean): void => {
      this.#isRunning = false;
      if (isDelivered) this.#delivered();
      if (this.#isRequested) this.now();
      else this.later();
    };
    this.#outbox.deliverAll().then(ended, () => ended(false));
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  start(): void {
    this.#isStopped = false;
    this.later();
  }
}
