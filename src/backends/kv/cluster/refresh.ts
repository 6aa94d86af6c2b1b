// Schedules topology lookups: one at a time, soon after a hint of a change, with a back-off while nothing is new.
import type { Clock, Timer } from "../../../core/clock.ts";
import { toError } from "../../../core/events.ts";

/** The pause between lookups doubles while they find nothing new and is reset after a quiet period. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
const QUIET_MS = 2_000;
/** Lookup interval while callers rely on pushes: a slot migration is noticed even if nothing is sent. */
const WATCH_MS = 1_000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class TopologyRefresh {
  readonly #clock: Clock;
  /** Resolves to whether anything was new. */
  readonly #lookUp: () => Promise<boolean>;
  #waiters: Waiter[] = [];
  #isRunning = false;
  /** There was a hint of a change since the last lookup began. */
  #isRequested = false;
  #pause: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #beganAt = Number.NEGATIVE_INFINITY;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #succeededAt = Number.NEGATIVE_INFINITY;
  /** Why the last lookup failed, if it did. */
  #failure: Error | undefined;
  #watch: Timer | undefined;
  #isReliedOn = false;
  #closed: Error | undefined;

  constructor(clock: Clock, lookUp: () => Promise<boolean>) {
    this.#clock = clock;
    this.#lookUp = lookUp;
  }

  /** Time since the last successful lookup. */
  get ageMs(): number {
    return this.#clock.now() - this.#succeededAt;
  }

  /** Starts a lookup as soon as the back-off allows, or after the one in progress. `isCertain`: a change is certain. */
  soon(isCertain = false): void {
    if (this.#closed !== undefined) return;
    const now = this.#clock.now();
    if (isCertain || now - this.#requestedAt > QUIET_MS) this.#resetPause();
    this.#requestedAt = now;
    this.#isRequested = true;
    if (this.#isRunning || this.#pause !== undefined) return;
    const wait = this.#beganAt + this.#jittered(this.#pauseMs) - now;
    if (wait > 0) {
      this.#pause = this.#clock.after(wait, () => {
        this.#pause = undefined;
        this.#begin();
      });
    } else this.#begin();
  }

  /** Resolves after the current or next lookup; rejects if it fails, immediately during the pause after a failure. */
  next(): Promise<void> {
    if (!this.#isRunning) this.soon();
    const isPausing = !this.#isRunning && this.#failure !== undefined;
    return isPausing ? Promise.reject(this.#failure) : this.#nextEnd();
  }

  /** As `next`, but waits for a lookup even after a failure. */
  force(): Promise<void> {
    if (!this.#isRunning) this.soon(true);
    return this.#nextEnd();
  }

  /** A caller relies on the topology without sending commands. */
  relyOn(): void {
    this.#isReliedOn = true;
    if (this.#watch === undefined && this.#closed === undefined) this.#startWatch();
  }

  close(reason: Error): void {
    this.#closed = reason;
    this.#pause?.cancel();
    this.#watch?.cancel();
    this.#settle(reason);
  }

  #nextEnd(): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  #startWatch(): void {
    this.#isReliedOn = false;
    this.#watch = this.#clock.after(this.#jittered(WATCH_MS), () => {
      this.#watch = undefined;
      if (!this.#isReliedOn) return;
      if (!this.#isRunning && this.#pause === undefined) this.#begin();
      this.#startWatch();
    });
  }

  #begin(): void {
    const wasRequested = this.#isRequested;
    this.#isRequested = false;
    this.#isRunning = true;
    this.#beganAt = this.#clock.now();
    this.#lookUp().then(
      (isNew) => this.#ended(isNew, wasRequested),
      (error) => this.#ended(false, true, toError(error)),
    );
  }

  #ended(isNew: boolean, wasRequested: boolean, failure?: Error): void {
    this.#isRunning = false;
    this.#failure = failure;
    if (failure === undefined) this.#succeededAt = this.#clock.now();
    if (isNew) this.#pauseMs = FIRST_PAUSE_MS;
    else if (wasRequested) this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#settle(failure);
    if (this.#isRequested) this.soon();
  }

  #resetPause(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#pause?.cancel();
    this.#pause = undefined;
  }

  #settle(failure: Error | undefined): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const { resolve, reject } of waiters) {
      if (failure === undefined) resolve();
      else reject(failure);
    }
  }

  #jittered(ms: number): number {
    return ms * (0.75 + this.#clock.random() / 2);
  }
}
