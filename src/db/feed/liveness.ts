// Whether a feed is alive: up to which moment every visible commit is known to be invalidated.
import type { Clock } from "../../core/clock.ts";

export class Liveness {
  readonly #clock: Clock;
  readonly #silentForMs: number;
  #provenAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, silentForMs: number) {
    this.#clock = clock;
    this.#silentForMs = silentForMs;
  }

  /** Every commit that was visible at `at` has been invalidated. */
  prove(at: number): void {
    this.#provenAt = Math.max(this.#provenAt, at);
  }

  /** What was proven may not hold any more. */
  forget(): void {
    this.#provenAt = Number.NEGATIVE_INFINITY;
  }

  get isAlive(): boolean {
    return this.#clock.now() - this.#provenAt <= this.#silentForMs;
  }

  /** Seconds since the moment of the latest proof; undefined: there is none. */
  get silence(): number | undefined {
    if (this.#provenAt === Number.NEGATIVE_INFINITY) return undefined;
    return Math.max(0, this.#clock.now() - this.#provenAt) / 1_000;
  }
}
