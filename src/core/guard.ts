// Every call to a shared store passes here: breaker, deadline, and errors in our own words.
import type { Failed } from "./backend.ts";
import type { CircuitBreaker, Pass } from "./breaker.ts";
import type { Clock } from "./clock.ts";
import { Deadlines } from "./deadline.ts";
import {
  BackendError,
  ConnectionError,
  OperationTimeoutError,
  UnsupportedError,
  XCacheError,
} from "./errors.ts";
import { toError } from "./events.ts";
import { redactError } from "./redact.ts";

export class Guard {
  readonly #breaker: CircuitBreaker;
  readonly #limitMs: number;
  readonly #deadlines: Deadlines;
  readonly #before: () => Promise<void> | undefined;

  /** `before` says what must be done before the store is asked anything else. */
  constructor(
    clock: Clock,
    breaker: CircuitBreaker,
    limitMs: number,
    before: () => Promise<void> | undefined = () => undefined,
  ) {
    this.#before = before;
    this.#breaker = breaker;
    this.#limitMs = limitMs;
    this.#deadlines = new Deadlines(clock, limitMs);
  }

  /** Runs `call` at once, unless the circuit is open; rejects when it takes longer than the deadline. */
  run<T>(operation: string, call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.ask<T>(operation, (succeed, fail) => call().then(succeed, fail), resolve, reject);
    });
  }

  /** As `run`, calling back instead. */
  ask<T>(
    operation: string,
    start: (succeed: (result: T) => void, fail: Failed) => void,
    done: (result: T) => void,
    failed: (error: XCacheError) => void,
  ): void {
    let pass: Pass;
    try {
      pass = this.#breaker.enter(operation);
    } catch (error) {
      failed(error as XCacheError);
      return;
    }
    const deadline = this.#deadlines.set(() => {
      this.#breaker.fail(pass);
      failed(this.#late(operation));
    });
    const succeed = (result: T): void => {
      if (deadline.isOver) return;
      deadline.meet();
      this.#breaker.succeed(pass);
      done(result);
    };
    const fail = (thrown: unknown): void => {
      if (deadline.isOver) return;
      deadline.meet();
      const error = inOurWords(thrown, operation);
      if (isStoreFailure(error)) this.#breaker.fail(pass);
      else this.#breaker.succeed(pass);
      failed(error);
    };
    try {
      const before = this.#before();
      if (before === undefined) start(succeed, fail);
      else before.then(() => start(succeed, fail)).catch(fail);
    } catch (thrown) {
      fail(thrown);
    }
  }

  #late(operation: string): OperationTimeoutError {
    return new OperationTimeoutError(
      `the store did not answer ${operation} within operation_timeout (${this.#limitMs / 1000} s)`,
      { operation },
    );
  }
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
