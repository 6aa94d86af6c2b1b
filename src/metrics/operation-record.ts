// What is known of one kind of operation, and which of its calls are timed: all while they are few, then some.
import { Histogram } from "./histogram.ts";

/** One call in so many is timed; the counts are exact. A prime, so that no regular pattern of calls hides one from it. */
export const TIMED_EVERY = 127;
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
  count = 0;
  errors = 0;
  readonly latency = new Histogram();
  #denseLeft = DENSE_CALLS;
  #denseSince = Number.NEGATIVE_INFINITY;
  #skipped = 0;

  /** Says whether the call that begins is timed. */
  isDue(): boolean {
    if (this.#denseLeft > 0 || this.#skipped + 1 >= TIMED_EVERY) return true;
    this.#skipped++;
    return false;
  }

  /** Begins to time a call for which `isDue` said yes. */
  begin(now: number): Timing {
    const weight = this.#skipped + 1;
    this.#skipped = 0;
    this.pace(now);
    return { startedAt: now, weight };
  }

  /** A call is being timed: says whether the next one is timed as well. */
  pace(now: number): boolean {
    if (now - this.#denseSince >= DENSE_EVERY_MS) {
      this.#denseSince = now;
      this.#denseLeft = DENSE_CALLS;
    }
    if (this.#denseLeft > 0) this.#denseLeft--;
    return this.#denseLeft > 0;
  }
}
