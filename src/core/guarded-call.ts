// One call to a shared store, from the moment it may begin until its caller is told how it ended.
import type { Pass } from "./breaker.ts";
import { Deadline } from "./deadlines.ts";
import type { XCacheError } from "./errors.ts";
import type { Guard } from "./guard.ts";
import { inOurWords } from "./store-failure.ts";

/** Told how a call ended; only the first time counts. */
export interface Outcome<T> {
  /** Its caller has been told an outcome, a missed deadline maybe: nothing more may be done for it. */
  readonly isOver: boolean;
  succeed(result: T): void;
  fail(error: unknown): void;
}

/**
 * A class, not closures: there is one for every call, and it stays in the queue of deadlines for a while. Whoever extends
 * it lets go in `forget` of what only its outcome needs.
 */
export abstract class GuardedCall<T> extends Deadline implements Outcome<T> {
  readonly operation: string;
  readonly #guard: Guard;
  #pass: Pass | undefined;

  constructor(guard: Guard, operation: string) {
    super(guard.deadlines);
    this.#guard = guard;
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
    this.#guard.breaker.succeed(this.#pass as Pass);
    this.succeeded(result);
    this.forget();
  }

  fail(thrown: unknown): void {
    if (this.meet()) this.#fail(inOurWords(thrown, this.operation));
  }

  missed(): void {
    this.#fail(this.#guard.late(this.operation));
  }

  #fail(error: XCacheError): void {
    this.#guard.failed(this.#pass as Pass, error);
    this.failed(error);
    this.forget();
  }
}
