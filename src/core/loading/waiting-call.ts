// How a getOrSet call waits for a load: no longer than its timeouts, with a stale value as the fallback.
import type { Clock } from "../clock.ts";
import type { ResolvedLoadOptions } from "../entry-options.ts";
import { OperationTimeoutError } from "../errors.ts";
import type { Found, MaybePromise } from "../namespace.ts";
import { withDeadline } from "../resilience/with-deadline.ts";

/** The result of getOrSet, and where it came from. */
export interface Loaded {
  readonly value: unknown;
  readonly source: "store" | "load" | "stale";
  /** Another call had started the load. */
  readonly coalesced?: boolean;
}

/** The result of a load. */
export interface Outcome extends Loaded {
  /** Whether it is new enough for a call that began at this moment in the change log; absent: for every call. */
  readonly isNewEnough?: (calledAt: number) => Promise<Verdict>;
}

/** `unknown`: the store could not be asked. */
export type Verdict = "new enough" | "too old" | "unknown";

/** The result of reading the store. */
export interface StoreLookup {
  readonly found: Found | undefined;
  readonly failed: boolean;
}

/** An in-flight load, as seen by a waiting call. */
export interface PendingLoad {
  readonly outcome: Promise<Outcome>;
  storeFailed: boolean;
}

export class WaitingCall {
  readonly #clock: Clock;
  readonly #request: ResolvedLoadOptions;
  readonly #find: () => MaybePromise<StoreLookup>;
  readonly #begunAt: number;
  #isLate = false;

  /** `find` reads what the store holds now. */
  constructor(clock: Clock, request: ResolvedLoadOptions, find: () => MaybePromise<StoreLookup>) {
    this.#clock = clock;
    this.#request = request;
    this.#find = find;
    this.#begunAt = this.mayEndEarly ? clock.now() : 0;
  }

  /** Whether it has a timeout: it may end before the load does. */
  get mayEndEarly(): boolean {
    return this.#request.hardTimeoutMs !== Number.POSITIVE_INFINITY || this.#hasSoftTimeout();
  }

  /**
   * Timeouts count from the beginning of the call, even if it waits for a second load. `overdue`: ends the wait when it
   * resolves.
   */
  outcomeOf<O = never>(load: PendingLoad, overdue?: Promise<O>): Promise<Outcome | O> {
    const outcome = overdue === undefined ? load.outcome : Promise.race([load.outcome, overdue]);
    return this.mayEndEarly ? this.#timedOutcome(load, outcome) : outcome;
  }

  async #timedOutcome<O>(load: PendingLoad, outcome: Promise<Outcome | O>): Promise<Outcome | O> {
    const { softTimeoutMs } = this.#request;
    if (this.#hasSoftTimeout()) {
      const early = await withDeadline(this.#clock, this.#leftOf(softTimeoutMs), outcome, () => undefined, {
        holdsProcess: true,
      });
      if (early !== undefined) return early;
      const first = await this.untilHard(Promise.race([outcome, this.#staleMeanwhile(load)]));
      if (first !== undefined) return first;
    }
    return this.untilHard(outcome);
  }

  /** Rejects when the call has waited for `hardTimeout`. */
  untilHard<T>(work: Promise<T>): Promise<T> {
    const { hardTimeoutMs } = this.#request;
    if (hardTimeoutMs === Number.POSITIVE_INFINITY) return work;
    const late = (): never => {
      this.#isLate = true;
      throw new OperationTimeoutError(
        `the load did not finish within hardTimeout (${hardTimeoutMs / 1000} s); it continues in the background`,
        { code: "LOAD_TIMEOUT", operation: "getOrSet" },
      );
    };
    return withDeadline(this.#clock, this.#leftOf(hardTimeoutMs), work, late, { holdsProcess: true });
  }

  /** The stale value to return if the load failed or timed out. */
  async staleOnError(load: PendingLoad): Promise<Loaded | undefined> {
    const { staleIfErrorMs } = this.#request;
    // A store that failed during this call, or was already read while it waited, is not read a second time.
    if (this.#isLate && this.#hasSoftTimeout()) return undefined;
    if (staleIfErrorMs === 0 || load.storeFailed) return undefined;
    return usable(await this.#find(), staleIfErrorMs);
  }

  #hasSoftTimeout(): boolean {
    return this.#request.softTimeoutMs < this.#request.hardTimeoutMs;
  }

  #leftOf(limitMs: number): number {
    return this.#begunAt + limitMs - this.#clock.now();
  }

  /** The value to return after `softTimeout`, if there is one. */
  async #staleMeanwhile(load: PendingLoad): Promise<Outcome | undefined> {
    const { staleIfErrorMs, staleWhileRevalidateMs } = this.#request;
    const lookup = await this.#find();
    if (lookup.failed) load.storeFailed = true;
    return usable(lookup, Math.max(staleIfErrorMs, staleWhileRevalidateMs));
  }
}

/** The found value, if it may be returned. */
function usable({ found }: StoreLookup, windowMs: number): Loaded | undefined {
  if (found?.fresh) return { value: found.value, source: "store" };
  if (found !== undefined && found.expiredForMs <= windowMs) return { value: found.value, source: "stale" };
  return undefined;
}
