// Hit-for-miss: marks keys whose last response could not be stored, so that requests do not queue for another such response.
import type { Clock } from "../../core/clock.ts";

const MAX_MARKS = 4_096;
const MARK_MS = 60_000;

export class HitForMiss {
  readonly #clock: Clock;
  readonly #markedUntil = new Map<string, number>();
  readonly #loads = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get hasLoads(): boolean {
    return this.#loads.size > 0;
  }

  /** True if a load of this key is in flight whose response probably cannot be shared: do not wait for it. */
  shouldPass(key: string): boolean {
    if (!this.#loads.has(key)) return false;
    const markedUntil = this.#markedUntil.get(key);
    return markedUntil !== undefined && this.#clock.now() < markedUntil;
  }

  beginLoad(key: string): void {
    this.#loads.set(key, (this.#loads.get(key) ?? 0) + 1);
  }

  endLoad(key: string): void {
    const left = (this.#loads.get(key) ?? 1) - 1;
    if (left === 0) this.#loads.delete(key);
    else this.#loads.set(key, left);
  }

  mark(key: string): void {
    this.#markedUntil.delete(key);
    this.#markedUntil.set(key, this.#clock.now() + MARK_MS);
    if (this.#markedUntil.size > MAX_MARKS) this.#markedUntil.delete(this.#markedUntil.keys().next().value!);
  }

  unmark(key: string): void {
    this.#markedUntil.delete(key);
  }
}
