// The system clock, except that timers of ten seconds and more wait until a test fires them.
import { type Clock, systemClock, type Timer } from "../../src/core/clock.ts";

const LONG_MS = 10_000;

export class HeldClock implements Clock {
  readonly now = systemClock.now;
  readonly coarse = systemClock.coarse;
  readonly token = systemClock.token;
  readonly random = systemClock.random;
  readonly #held = new Set<() => void>();

  readonly after = (delayMs: number, run: () => void): Timer => {
    if (delayMs < LONG_MS) return systemClock.after(delayMs, run);
    this.#held.add(run);
    return { cancel: () => void this.#held.delete(run) };
  };

  /** Runs the waiting timers, and returns how many there were. */
  fire(): number {
    const due = [...this.#held];
    this.#held.clear();
    for (const run of due) run();
    return due.length;
  }
}
