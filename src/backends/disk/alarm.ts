// One timer for many deadlines, armed for the earliest.
import type { Clock, Timer } from "../../core/clock.ts";

export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => number;
  #timer: Timer | undefined;
  #due = Number.POSITIVE_INFINITY;

  /** `ring` is called when a deadline has passed and returns the next one; Infinity for none. */
  constructor(clock: Clock, ring: () => number) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Rings no later than this. */
  set(due: number): void {
    if (due >= this.#due) return;
    this.#timer?.cancel();
    this.#due = due;
    this.#timer = this.#clock.after(due - this.#clock.now(), () => {
      this.#due = Number.POSITIVE_INFINITY;
      this.set(this.#ring());
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#due = Number.POSITIVE_INFINITY;
  }
}
