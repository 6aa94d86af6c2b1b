// Failures of a store: which errors say something of its health, and how a client's errors are told in our own words.
import { BackendError, ConnectionError, UnsupportedError, XCacheError } from "../errors.ts";
import { toError } from "../events.ts";
import { redactError } from "../redact.ts";

/** Whether an error says something about the store's health, not about the request. */
export function isStoreFailure(error: unknown): boolean {
  return error instanceof BackendError && !(error instanceof UnsupportedError);
}

const refusals = new WeakSet<Error>();

/** Says of an error that the store is well: it has answered, and refuses this one request. */
export function asRefusal<E extends Error>(error: E): E {
  refusals.add(error);
  return error;
}

const passing = new WeakSet<Error>();

/** Says of an error that it is the store's own answer, and will pass whatever was asked: it is worth asking again. */
export function markTransient<E extends Error>(error: E): E {
  passing.add(error);
  return error;
}

export const isPassing = (error: Error): boolean => passing.has(error);

/** Whether an error says that the next request may well fail too. */
export const countsAsFailure = (error: XCacheError): boolean => isStoreFailure(error) && !refusals.has(error);

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
export function toXCacheError(thrown: unknown, operation: string): XCacheError {
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
