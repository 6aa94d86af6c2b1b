// When a cluster is asked for its topology: once at a time, soon after something pointed to a change, and not too often.
import type { Clock, Timer } from "../../../core/clock.ts";
import { toError } from "../../../core/events.ts";

/** Pauses grow from the first to the longest while nothing new is learnt, and shrink after some quiet. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
const QUIET_MS = 2_000;
/** How often the cluster is asked while somebody relies on its pushes: a move is noticed though nothing is sent. */
const WATCH_MS = 1_000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class TopologyRefresh {
  readonly #clock: Clock;
  /** Whether anything was new. */
  readonly #look: () => Promise<boolean>;
  #waiters: Waiter[] = [];
  #isRunning = false;
  /** Something pointed to a change since the last look began. */
  #isWanted = false;
  #pause: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #beganAt = Number.NEGATIVE_INFINITY;
  #wantedAt = Number.NEGATIVE_INFINITY;
  #succeededAt = Number.NEGATIVE_INFINITY;
  /** Why the last look failed, if it did. */
  #failure: Error | undefined;
  #watch: Timer | undefined;
  #isReliedOn = false;
  #closed: Error | undefined;

  constructor(clock: Clock, look: () => Promise<boolean>) {
    this.#clock = clock;
    this.#look = look;
  }

  /** How long ago the answer came that counts. */
  get ageMs(): number {
    return this.#clock.now() - this.#succeededAt;
  }

  /** Looks as soon as it may, and again if it is looking already. `isCertain`: something has changed, not only may have. */
  soon(isCertain = false): void {
    if (this.#closed !== undefined) return;
    const now = this.#clock.now();
    if (isCertain || now - this.#wantedAt > QUIET_MS) this.#hurry();
    this.#wantedAt = now;
    this.#isWanted = true;
    if (this.#isRunning || this.#pause !== undefined) return;
    const wait = this.#beganAt + this.#jittered(this.#pauseMs) - now;
    if (wait > 0) {
      this.#pause = this.#clock.after(wait, () => {
        this.#pause = undefined;
        this.#begin();
      });
    } else this.#begin();
  }

  /** Resolves after the next look, or the present one; rejects if it fails, at once while there is a pause after a failure. */
  done(): Promise<void> {
    if (!this.#isRunning) this.soon();
    const isPausing = !this.#isRunning && this.#failure !== undefined;
    return isPausing ? Promise.reject(this.#failure) : this.#ending();
  }

  /** As `done`, for somebody who waits for the next look in any case. */
  once(): Promise<void> {
    if (!this.#isRunning) this.soon(true);
    return this.#ending();
  }

  /** Somebody goes by what was learnt without sending anything. */
  relyOn(): void {
    this.#isReliedOn = true;
    if (this.#watch === undefined && this.#closed === undefined) this.#watchOn();
  }

  close(reason: Error): void {
    this.#closed = reason;
    this.#pause?.cancel();
    this.#watch?.cancel();
    this.#settle(reason);
  }

  #ending(): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  #watchOn(): void {
    this.#isReliedOn = false;
    this.#watch = this.#clock.after(this.#jittered(WATCH_MS), () => {
      this.#watch = undefined;
      if (!this.#isReliedOn) return;
      if (!this.#isRunning && this.#pause === undefined) this.#begin();
      this.#watchOn();
    });
  }

  #begin(): void {
    const wasWanted = this.#isWanted;
    this.#isWanted = false;
    this.#isRunning = true;
    this.#beganAt = this.#clock.now();
    this.#look().then(
      (isNew) => this.#ended(isNew, wasWanted),
      (error) => this.#ended(false, true, toError(error)),
    );
  }

  #ended(isNew: boolean, wasWanted: boolean, failure?: Error): void {
    this.#isRunning = false;
    this.#failure = failure;
    if (failure === undefined) this.#succeededAt = this.#clock.now();
    if (isNew) this.#pauseMs = FIRST_PAUSE_MS;
    else if (wasWanted) this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#settle(failure);
    if (this.#isWanted) this.soon();
  }

  #hurry(): void {
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
