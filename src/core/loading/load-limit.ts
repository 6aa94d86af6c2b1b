// How long callers wait for a load that another one has started; one timer serves all loads.
import type { Clock, Timer } from "../clock.ts";

export const OVERDUE: unique symbol = Symbol("overdue");

/** The limit of one load. Its own caller goes on waiting for it. */
export class LoadLimit {
  isExceeded = false;
  /** When it is exceeded; known once the load has begun. */
  due = Number.POSITIVE_INFINITY;
  /** Its neighbours among the running loads: links cost less than an entry of a Set. */
  older: LoadLimit | undefined;
  newer: LoadLimit | undefined;
  #exceeded: Promise<typeof OVERDUE> | undefined;
  #wake: (() => void) | undefined;

  /** Resolves when the limit is exceeded. */
  exceeded(): Promise<typeof OVERDUE> {
    this.#exceeded ??= new Promise((resolve) => {
      this.#wake = () => resolve(OVERDUE);
    });
    return this.#exceeded;
  }

  exceed(): void {
    this.isExceeded = true;
    this.#wake?.();
  }
}

export class LoadLimits {
  readonly #clock: Clock;
  readonly #limitMs: number;
  #oldest: LoadLimit | undefined;
  #newest: LoadLimit | undefined;
  #timer: Timer | undefined;
  readonly #isConnected: () => boolean;

  /** `isConnected`: a cache that is not leaves no timer behind; usually one timer serves many loads and outlasts them. */
  constructor(clock: Clock, limitMs: number, isConnected: () => boolean) {
    this.#clock = clock;
    this.#isConnected = isConnected;
    this.#limitMs = limitMs;
  }

  begin(limit: LoadLimit): void {
    limit.due = this.#clock.now() + this.#limitMs;
    limit.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = limit;
    else this.#newest.newer = limit;
    this.#newest = limit;
    if (this.#timer === undefined) this.#arm(this.#limitMs);
  }

  end(limit: LoadLimit): void {
    this.#unlink(limit);
    if (!this.#isConnected()) this.rest();
  }

  /** Stops the timer unless a load is running. */
  rest(): void {
    if (this.#oldest !== undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Does nothing if it is not among the running. */
  #unlink(limit: LoadLimit): void {
    const { older, newer } = limit;
    if (older !== undefined) older.newer = newer;
    else if (this.#oldest === limit) this.#oldest = newer;
    if (newer !== undefined) newer.older = older;
    else if (this.#newest === limit) this.#newest = older;
    limit.older = undefined;
    limit.newer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#check());
  }

  #check(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    for (let limit = this.#oldest; limit !== undefined; limit = this.#oldest) {
      if (limit.due > now) {
        this.#arm(limit.due - now);
        return;
      }
      this.#unlink(limit);
      limit.exceed();
    }
  }
}
