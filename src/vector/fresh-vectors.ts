// Vectors of answers on their way into the store: each joins the index when the cache tells that its entry was written.
import type { Clock } from "../core/clock.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";

/** Of loads that store nothing the vectors stay behind; the oldest make room. */
const MOST_FRESH = 1_000;
/** An answer is at hand and its caller waits: a store that has become slow is not waited for. */
const LONGEST_WAIT_MS = 1_000;

export class FreshVectors {
  readonly #clock: Clock;
  readonly #stored: (key: string, vector: Float32Array) => Promise<void>;
  readonly #fresh = new Map<string, Float32Array>();
  readonly #announced = new Map<string, Promise<void>>();

  /** `stored` never rejects. */
  constructor(clock: Clock, stored: (key: string, vector: Float32Array) => Promise<void>) {
    this.#clock = clock;
    this.#stored = stored;
  }

  /** Until the entry is written, which may be after its callers have left. */
  remember(key: string, vector: Float32Array): void {
    this.#fresh.delete(key);
    this.#fresh.set(key, vector);
    if (this.#fresh.size > MOST_FRESH) this.#fresh.delete(this.#fresh.keys().next().value!);
  }

  written(key: string): void {
    const vector = this.#fresh.get(key);
    if (vector === undefined) return;
    this.#fresh.delete(key);
    const announced = this.#stored(key, vector).finally(() => {
      if (this.#announced.get(key) === announced) this.#announced.delete(key);
    });
    this.#announced.set(key, announced);
  }

  /** Resolves once other processes can find what was written under this key, or after a second. */
  async announced(key: string): Promise<void> {
    const announced = this.#announced.get(key);
    if (announced !== undefined) await withDeadline(this.#clock, LONGEST_WAIT_MS, announced, () => undefined);
  }
}
