// One call to a shared store, from the moment it may begin until its caller is told how it ended.
import type { CircuitBreaker, Pass } from "../breaker.ts";
import type { XCacheError } from "../errors.ts";
import { Deadline, type DeadlineQueue } from "./deadline-queue.ts";
import { toXCacheError } from "./store-failure.ts";

/** Told how a call ended; only the first time counts. */
export interface Outcome<T> {
  /** Its caller has been told an outcome, a missed deadline maybe: nothing more may be done for it. */
  readonly isOver: boolean;
  succeed(result: T): void;
  fail(error: unknown): void;
}

/** Who lets calls through. */
export interface CallHost {
  readonly breaker: CircuitBreaker;
  readonly deadlines: DeadlineQueue;
  /** Told what a failed call says of the store. */
  failed(pass: Pass, error: XCacheError): void;
  /** The error of one that took too long. */
  late(operation: string): XCacheError;
}

/**
 * A class, not closures: there is one for every call, and it stays in the queue of deadlines for a while. Whoever extends
 * it lets go in `forget` of what only its outcome needs.
 */
export abstract class GuardedCall<T> extends Deadline implements Outcome<T> {
  readonly operation: string;
  readonly #host: CallHost;
  #pass: Pass | undefined;

  constructor(host: CallHost, operation: string) {
    super(host.deadlines);
    this.#host = host;
    this.operation = operation;
  }

  /** The circuit lets it through: it is on its way. */
  admit(pass: Pass): void {
    this.#pass = pass;
  }

  /** Asks the store. What it throws is a failure of the call. */
  abstract start(): void;

  /** Tells its caller; called once at most, and not after `failed`. */
  abstract succeeded(result: T): void;

  /** Tells its caller. */
  abstract failed(error: XCacheError): void;

  protected abstract forget(): void;

  succeed(result: T): void {
    if (!this.meet()) return;
    this.#host.breaker.succeed(this.#pass as Pass);
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
    this.#host.failed(this.#pass as Pass, error);
    this.failed(error);
    this.forget();
  }
}
