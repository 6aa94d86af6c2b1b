// Counts, errors and latencies of one operation, and which calls are timed: all while they are few, then a sample.
import { Histogram } from "./histogram.ts";

/** One call in this many is timed; counts are exact. A prime, so that no regular call pattern escapes sampling. */
const TIMED_EVERY = 127;
/** Up to this many consecutive calls are timed per second, so that rare operations are all measured. */
const DENSE_CALLS = 32;
const DENSE_EVERY_MS = 1_000;

/** A call being timed. */
export interface Timing {
  readonly startedAt: number;
  /** How many calls it represents: itself and the untimed calls before it. */
  readonly weight: number;
}

export class OperationRecord {
  errors = 0;
  /** Whether to time the next call. Reading this field is the only cost of an untimed call. */
  timesNext = true;
  readonly latency = new Histogram();
  /** Calls until the next timed one. Doubles as the call counter, so that a hit updates one number instead of two. */
  #untilTimed = TIMED_EVERY;
  #countedBefore = 0;
  #denseLeft = DENSE_CALLS;
  #denseSince = Number.NEGATIVE_INFINITY;
  /** How many calls the timed ones represent. */
  #timed = 0;

  get count(): number {
    return this.#countedBefore + TIMED_EVERY - this.#untilTimed;
  }

  /** Counts a call. */
  add(): void {
    if (--this.#untilTimed > 0) return;
    this.#countedBefore += TIMED_EVERY;
    this.#untilTimed = TIMED_EVERY;
    this.timesNext = true;
  }

  /** Starts timing a call that has not been counted yet. */
  begin(now: number): Timing {
    if (now - this.#denseSince >= DENSE_EVERY_MS) {
      this.#denseSince = now;
      this.#denseLeft = DENSE_CALLS;
    }
    if (this.#denseLeft > 0) this.#denseLeft--;
    this.timesNext = this.#denseLeft > 0;
    // Concurrent calls in flight are not counted yet.
    const weight = Math.max(1, this.count + 1 - this.#timed);
    this.#timed += weight;
    return { startedAt: now, weight };
  }
}
