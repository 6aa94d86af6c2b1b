// Every call to a shared store passes here: breaker, deadline, and errors in our own words.
import type { CircuitBreaker, Pass } from "./breaker.ts";
import type { Clock } from "./clock.ts";
import { Deadline, Deadlines } from "./deadlines.ts";
import {
  BackendError,
  ConnectionError,
  OperationTimeoutError,
  UnsupportedError,
  XCacheError,
} from "./errors.ts";
import { toError } from "./events.ts";
import { redactError } from "./redact.ts";

/** Told how a call ended; only the first time counts. */
export interface Outcome<T> {
  /** Its caller has been told an outcome, a missed deadline maybe: nothing more may be done for it. */
  readonly isOver: boolean;
  succeed(result: T): void;
  fail(error: unknown): void;
}

/** A class, not closures: there is one for every call, and it stays in the queue of deadlines for a while. */
class Call<T> extends Deadline implements Outcome<T> {
  readonly #guard: Guard;
  readonly #operation: string;
  readonly #pass: Pass;
  #done: ((result: T) => void) | undefined;
  #failed: ((error: XCacheError) => void) | undefined;

  constructor(
    guard: Guard,
    operation: string,
    pass: Pass,
    done: (result: T) => void,
    failed: (error: XCacheError) => void,
  ) {
    super(guard.deadlines);
    this.#guard = guard;
    this.#operation = operation;
    this.#pass = pass;
    this.#done = done;
    this.#failed = failed;
  }

  succeed(result: T): void {
    const done = this.#done;
    if (!this.#end()) return;
    this.#guard.breaker.succeed(this.#pass);
    done?.(result);
  }

  fail(thrown: unknown): void {
    const failed = this.#failed;
    if (!this.#end()) return;
    const error = inOurWords(thrown, this.#operation);
    this.#guard.failed(this.#pass, error);
    failed?.(error);
  }

  missed(): void {
    const failed = this.#failed;
    this.#forget();
    const error = this.#guard.late(this.#operation);
    this.#guard.failed(this.#pass, error);
    failed?.(error);
  }

  #end(): boolean {
    const wasOpen = this.meet();
    this.#forget();
    return wasOpen;
  }

  #forget(): void {
    this.#done = undefined;
    this.#failed = undefined;
  }
}

export interface GuardOptions {
  /** What must be done before the store is asked anything else. */
  before?(): Promise<void> | undefined;
  /** See Backend. */
  answersInPart?(): boolean;
}

export class Guard {
  readonly breaker: CircuitBreaker;
  readonly deadlines: Deadlines;
  readonly #limitMs: number;
  readonly #options: GuardOptions;

  constructor(clock: Clock, breaker: CircuitBreaker, limitMs: number, options: GuardOptions = {}) {
    this.breaker = breaker;
    this.deadlines = new Deadlines(clock, limitMs);
    this.#limitMs = limitMs;
    this.#options = options;
  }

  /** Runs `call` at once, unless the circuit is open; rejects when it takes longer than the deadline. */
  run<T>(operation: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (call: Outcome<T>): void => settle(work(), call);
      this.ask<T>(operation, start, resolve, reject);
    });
  }

  /** As `run`, calling back instead. */
  ask<T>(
    operation: string,
    start: (call: Outcome<T>) => void,
    done: (result: T) => void,
    failed: (error: XCacheError) => void,
  ): void {
    let pass: Pass;
    try {
      pass = this.breaker.enter(operation);
    } catch (error) {
      failed(error as XCacheError);
      return;
    }
    const call = new Call(this, operation, pass, done, failed);
    this.deadlines.add(call);
    try {
      const before = this.#options.before?.();
      if (before === undefined) start(call);
      else
        before
          .then(() => {
            if (!call.isOver) start(call);
          })
          .catch((thrown: unknown) => call.fail(thrown));
    } catch (thrown) {
      call.fail(thrown);
    }
  }

  /** What a failed call says of the store. */
  failed(pass: Pass, error: XCacheError): void {
    if (isStoreFailure(error) && this.#options.answersInPart?.() !== true) this.breaker.fail(pass);
    else this.breaker.succeed(pass);
  }

  late(operation: string): OperationTimeoutError {
    return new OperationTimeoutError(
      `the store did not answer ${operation} within operation_timeout (${this.#limitMs / 1000} s)`,
      { operation },
    );
  }
}

/** Tells how a promise ends. */
export function settle<T>(work: Promise<T>, call: Outcome<T>): void {
  work.then(
    (result) => call.succeed(result),
    (error: unknown) => call.fail(error),
  );
}

/** Whether an error says something about the store's health, not about the request. */
export function isStoreFailure(error: unknown): boolean {
  return error instanceof BackendError && !(error instanceof UnsupportedError);
}

const CONNECTION_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EAI_AGAIN",
]);

/** A store's failure as a typed error, without credentials. */
export function inOurWords(thrown: unknown, operation: string): XCacheError {
  const error = redactError(toError(thrown));
  if (error instanceof XCacheError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  const words = error.message || code || error.name;
  if (code !== undefined && CONNECTION_CODES.has(code)) {
    return new ConnectionError(`the store cannot be reached: ${words}`, { operation, cause: error });
  }
  return new BackendError("STORE_FAILED", `the store failed at ${operation}: ${words}`, {
    operation,
    cause: error,
  });
}
