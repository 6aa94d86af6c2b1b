// What a store in use needs every few seconds; it rests when nobody uses the store.
import type { Clock } from "../clock.ts";

const EVERY_MS = 5_000;

export class Maintenance {
  readonly #clock: Clock;
  readonly #work: () => Promise<void>;
  readonly #isNeeded: () => boolean;
  #used = false;
  #armed = false;
  #stopped = false;

  /** `isNeeded` tells whether there is something to do although nobody uses the store. */
  constructor(clock: Clock, work: () => Promise<void>, isNeeded: () => boolean) {
    this.#clock = clock;
    this.#work = work;
    this.#isNeeded = isNeeded;
  }

  /** The store is used just now. */
  used(): void {
    this.#used = true;
    if (!this.#armed) this.#arm();
  }

  #arm(): void {
    this.#armed = true;
    this.#clock.after(EVERY_MS, () => {
      this.#armed = false;
      if (this.#stopped || (!this.#used && !this.#isNeeded())) return;
      this.#used = false;
      const again = (): void => {
        if (!this.#armed) this.#arm();
      };
      this.#work().then(again, again);
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  start(): void {
    this.#stopped = false;
    if (!this.#armed && this.#isNeeded()) this.#arm();
  }
}
