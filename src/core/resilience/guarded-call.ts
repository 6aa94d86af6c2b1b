// One call to a shared store, from its admission by the breaker to the outcome its caller gets.
import type { CircuitBreaker, Pass } from "../breaker.ts";
import type { XCacheError } from "../errors.ts";
import { Deadline, type DeadlineQueue } from "./deadline-queue.ts";
import { toXCacheError } from "./store-failure.ts";
import type { StoreNotice } from "./store-notice.ts";

/** Receives the outcome of a call; only the first one counts. */
export interface Outcome<T> {
  /** The caller already has an outcome, possibly a missed deadline: nothing more may be done for it. */
  readonly isOver: boolean;
  succeed(result: T): void;
  fail(error: unknown): void;
}

/** What a call needs of its guard. */
export interface CallHost {
  readonly breaker: CircuitBreaker;
  readonly deadlines: DeadlineQueue;
  readonly notice?: StoreNotice | undefined;
  /** Reports a failure to the breaker. */
  failed(pass: Pass, error: XCacheError): void;
  /** The error of a missed deadline. */
  late(operation: string): XCacheError;
}

/**
 * A class instead of closures: there is one per call, and it stays in the deadline queue for a while. A subclass drops
 * in `forget` whatever only its outcome needs.
 */
export abstract class GuardedCall<T> extends Deadline implements Outcome<T> {
  readonly operation: string;
  /** The breaker's permission; undefined until it lets the call through. */
  pass: Pass | undefined;
  readonly #host: CallHost;

  constructor(host: CallHost, operation: string) {
    super(host.deadlines);
    this.#host = host;
    this.operation = operation;
  }

  /** Sends the command. Whatever it throws fails the call. */
  abstract start(): void;

  /** Hands the result to the caller; called at most once, and not after `failed`. */
  abstract succeeded(result: T): void;

  /** Hands the error to the caller. */
  abstract failed(error: XCacheError): void;

  protected abstract forget(): void;

  succeed(result: T): void {
    if (!this.meet()) return;
    const { breaker, notice } = this.#host;
    breaker.succeed(this.pass as Pass);
    if (notice?.isFailing) notice.worked();
    this.succeeded(result);
    this.forget();
  }

  fail(thrown: unknown): void {
    if (this.meet()) this.#fail(toXCacheError(thrown, this.operation));
  }

  missed(): void {
    this.#fail(this.#host.late(this.operation));
  }

  #fail(error: XCacheError): void {
    this.#host.failed(this.pass as Pass, error);
    this.failed(error);
    this.forget();
  }
}
