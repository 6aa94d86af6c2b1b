// Periodic maintenance of a store in use; it stops while the store is idle.
import type { Clock, Timer } from "../clock.ts";

const EVERY_MS = 5_000;

export class Maintenance {
  readonly #clock: Clock;
  readonly #work: () => Promise<void>;
  readonly #isNeeded: () => boolean;
  #used = false;
  #timer: Timer | undefined;
  #armed = false;
  #stopped = false;

  /** `isNeeded`: whether there is work to do even while the store is idle. */
  constructor(clock: Clock, work: () => Promise<void>, isNeeded: () => boolean) {
    this.#clock = clock;
    this.#work = work;
    this.#isNeeded = isNeeded;
  }

  /** Called on every use of the store. */
  used(): void {
    this.#used = true;
    if (!this.#armed && !this.#stopped) this.#arm();
  }

  #arm(): void {
    this.#armed = true;
    this.#timer = this.#clock.after(EVERY_MS, () => {
      this.#armed = false;
      if (this.#stopped || (!this.#used && !this.#isNeeded())) return;
      this.#used = false;
      const again = (): void => {
        if (!this.#armed && !this.#stopped) this.#arm();
      };
      this.#work().then(again, again);
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#armed = false;
  }

  start(): void {
    this.#stopped = false;
    if (!this.#armed && this.#isNeeded()) this.#arm();
  }
}
