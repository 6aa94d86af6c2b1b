// Vectors of answers that are being stored: each joins the index when the cache reports that its entry was written.
import type { Clock } from "../core/clock.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";

/** Loads that store nothing leave their vectors behind, so the oldest are dropped. */
const MOST_FRESH = 1_000;
/** The answer is ready and its caller is waiting, so a slow store is not waited for any longer. */
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

  /** Until the entry is written, which may be after its callers got their answer. */
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
