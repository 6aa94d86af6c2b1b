// What is known of one kind of operation, and which of its calls are timed: all while they are few, then some.
import { Histogram } from "./histogram.ts";

/** One call in so many is timed; the counts are exact. A prime, so that no regular pattern of calls hides one from it. */
const TIMED_EVERY = 127;
/** So many calls are timed one after the other, at most once in so long: what is rare is all measured. */
const DENSE_CALLS = 32;
const DENSE_EVERY_MS = 1_000;

/** A call that is being timed. */
export interface Timing {
  readonly startedAt: number;
  /** How many calls it stands for: those before it that were not timed, and itself. */
  readonly weight: number;
}

export class OperationRecord {
  errors = 0;
  /** Whether the next call is one to be timed: to ask this is all that a call that is not should cost. */
  timesNext = true;
  readonly latency = new Histogram();
  /** Calls until one is timed. It counts them as well, because each hit does so: one number to change is less than two. */
  #untilTimed = TIMED_EVERY;
  #countedBefore = 0;
  #denseLeft = DENSE_CALLS;
  #denseSince = Number.NEGATIVE_INFINITY;
  /** How many calls those that were timed stand for. */
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

  /** Begins to time a call that is yet to be counted. */
  begin(now: number): Timing {
    if (now - this.#denseSince >= DENSE_EVERY_MS) {
      this.#denseSince = now;
      this.#denseLeft = DENSE_CALLS;
    }
    if (this.#denseLeft > 0) this.#denseLeft--;
    this.timesNext = this.#denseLeft > 0;
    // Of calls that are under way together, none is counted yet.
    const weight = Math.max(1, this.count + 1 - this.#timed);
    this.#timed += weight;
    return { startedAt: now, weight };
  }
}
