// Every call to a shared store passes here: breaker, deadline, and errors in our own words.
import type { CircuitBreaker } from "./breaker.ts";
import type { Clock } from "./clock.ts";
import { withDeadline } from "./deadline.ts";
import {
  BackendError,
  ConnectionError,
  OperationTimeoutError,
  UnsupportedError,
  XCacheError,
} from "./errors.ts";
import { toError } from "./events.ts";
import { redactText } from "./redact.ts";

export class Guard {
  readonly #clock: Clock;
  readonly #breaker: CircuitBreaker;
  readonly #limitMs: number;

  constructor(clock: Clock, breaker: CircuitBreaker, limitMs: number) {
    this.#clock = clock;
    this.#breaker = breaker;
    this.#limitMs = limitMs;
  }

  /** Runs `call` at once, unless the circuit is open; rejects when it takes longer than the deadline. */
  async run<T>(operation: string, call: () => Promise<T>): Promise<T> {
    const pass = this.#breaker.enter(operation);
    try {
      const result = await withDeadline(this.#clock, this.#limitMs, call(), () => {
        throw new OperationTimeoutError(
          `the store did not answer ${operation} within operation_timeout (${this.#limitMs / 1000} s)`,
          { operation },
        );
      });
      this.#breaker.succeed(pass);
      return result;
    } catch (thrown) {
      const error = inOurWords(thrown, operation);
      if (isStoreFailure(error)) this.#breaker.fail(pass);
      else this.#breaker.succeed(pass);
      throw error;
    }
  }
}

/** Whether an error says something about the store's health, not about the request. */
function isStoreFailure(error: XCacheError): boolean {
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

function inOurWords(thrown: unknown, operation: string): XCacheError {
  if (thrown instanceof XCacheError) return thrown;
  const error = toError(thrown);
  const code = (error as NodeJS.ErrnoException).code;
  const words = redactText(error.message || code || error.name);
  if (code !== undefined && CONNECTION_CODES.has(code)) {
    return new ConnectionError(`the store cannot be reached: ${words}`, { operation, cause: error });
  }
  return new BackendError("STORE_FAILED", `the store failed at ${operation}: ${words}`, {
    operation,
    cause: error,
  });
}
