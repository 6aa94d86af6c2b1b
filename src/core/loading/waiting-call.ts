// How one call of getOrSet waits for a load: no longer than its timeouts, and with a stale value where one may answer.
import type { Clock } from "../clock.ts";
import type { ResolvedLoadOptions } from "../entry-options.ts";
import { OperationTimeoutError } from "../errors.ts";
import type { Found } from "../namespace.ts";
import { withDeadline } from "../resilience/with-deadline.ts";

/** What a caller of getOrSet gets, and where it came from. */
export interface Loaded {
  readonly value: unknown;
  readonly source: "store" | "load" | "stale";
}

/** What a load has brought. */
export interface Outcome extends Loaded {
  /** Whether it is new enough for a call that began at this moment in the log of changes; absent: for every call. */
  readonly suits?: (calledAt: number) => Promise<Verdict>;
}

export type Verdict = "new enough" | "too old" | "not told";

/** What asking the store brought. */
export interface Look {
  readonly found: Found | undefined;
  readonly failed: boolean;
}

/** The part of a load that a waiting call sees. */
export interface Awaited {
  readonly outcome: Promise<Outcome>;
  storeFailed: boolean;
}

export class WaitingCall {
  readonly #clock: Clock;
  readonly #request: ResolvedLoadOptions;
  readonly #find: () => Promise<Look>;
  readonly #begunAt: number;
  #isLate = false;

  /** `find` asks the store what it holds now. */
  constructor(clock: Clock, request: ResolvedLoadOptions, find: () => Promise<Look>) {
    this.#clock = clock;
    this.#request = request;
    this.#find = find;
    this.#begunAt = clock.now();
  }

  /** Counted from the beginning of the call, also where it waits for a second load. */
  async outcomeOf(load: Awaited): Promise<Outcome> {
    const { softTimeoutMs } = this.#request;
    if (this.#hasSoftTimeout) {
      const early = await withDeadline(
        this.#clock,
        this.#leftOf(softTimeoutMs),
        load.outcome,
        () => undefined,
      );
      if (early !== undefined) return early;
      const first = await this.untilHard(Promise.race([load.outcome, this.#staleMeanwhile(load)]));
      if (first !== undefined) return first;
    }
    return this.untilHard(load.outcome);
  }

  /** Rejects when the call has waited for as long as it wants to. */
  untilHard<T>(work: Promise<T>): Promise<T> {
    const { hardTimeoutMs } = this.#request;
    return withDeadline(this.#clock, this.#leftOf(hardTimeoutMs), work, () => {
      this.#isLate = true;
      throw new OperationTimeoutError(
        `the load did not finish within hardTimeout (${hardTimeoutMs / 1000} s); it goes on in the background`,
        { code: "LOAD_TIMEOUT", operation: "getOrSet" },
      );
    });
  }

  /** What may be handed out where the load has failed or takes too long. */
  async insteadOfError(load: Awaited): Promise<Loaded | undefined> {
    const { staleIfErrorMs } = this.#request;
    // A store that did not answer this call, or was asked while it waited, is not asked a second time.
    if (this.#isLate && this.#hasSoftTimeout) return undefined;
    if (staleIfErrorMs === 0 || load.storeFailed) return undefined;
    return usable(await this.#find(), staleIfErrorMs);
  }

  get #hasSoftTimeout(): boolean {
    return this.#request.softTimeoutMs < this.#request.hardTimeoutMs;
  }

  #leftOf(limitMs: number): number {
    return this.#begunAt + limitMs - this.#clock.now();
  }

  /** What answers instead of a load that takes long, unless there is nothing. */
  async #staleMeanwhile(load: Awaited): Promise<Outcome | undefined> {
    const { staleIfErrorMs, staleWhileRevalidateMs } = this.#request;
    const look = await this.#find();
    if (look.failed) load.storeFailed = true;
    return usable(look, Math.max(staleIfErrorMs, staleWhileRevalidateMs));
  }
}

/** What was found, if it may be handed out. */
function usable({ found }: Look, windowMs: number): Loaded | undefined {
  if (found?.fresh) return { value: found.value, source: "store" };
  if (found !== undefined && found.expiredForMs <= windowMs) return { value: found.value, source: "stale" };
  return undefined;
}
