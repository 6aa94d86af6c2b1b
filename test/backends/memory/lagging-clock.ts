// A manual clock whose coarse time lags behind, as the system's does.
import { ManualClock } from "../../../src/testing/manual-clock.ts";

export class LaggingClock extends ManualClock {
  readonly #lagMs: number;

  /** The contract of a clock allows a lag of up to `COARSE_LAG_MS`. */
  constructor(lagMs: number) {
    super();
    this.#lagMs = lagMs;
  }

  override readonly coarse = (): number => this.now() - this.#lagMs;
}
