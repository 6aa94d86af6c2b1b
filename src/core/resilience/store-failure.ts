// Failures of a store: which errors concern its health, and how a client's errors become typed ones.
import type { FailureKind } from "../breaker.ts";
import { BackendError, ConnectionError, UnsupportedError, XCacheError } from "../errors.ts";
import { toError } from "../events.ts";
import { redactError } from "../redact.ts";

/** Whether an error concerns the store's health rather than the request. */
export function isStoreFailure(error: unknown): boolean {
  return error instanceof BackendError && !(error instanceof UnsupportedError);
}

const refusals = new WeakSet<Error>();

/** Marks an error as a refusal: the store is healthy and rejected this one request. */
export function asRefusal<E extends Error>(error: E): E {
  refusals.add(error);
  return error;
}

const transient = new WeakSet<Error>();

/** Marks an error as a transient reply of the store: the request is worth repeating. */
export function markTransient<E extends Error>(error: E): E {
  transient.add(error);
  return error;
}

const losses = new WeakSet<Error>();

/** Marks an error as the loss of a connection: all calls that were on it fail with this one error. */
export function markLoss<E extends Error>(error: E): E {
  losses.add(error);
  return error;
}

export const isLoss = (error: Error): boolean => losses.has(error);

const attempts = new WeakSet<Error>();

/** Marks the error of an attempt to connect, with which all calls that waited for it fail. */
export function markAttempt<E extends Error>(error: E): E {
  attempts.add(error);
  return error;
}

const waits = new WeakSet<Error>();

/** Marks the error of calls that waited in vain for a connection in place of one that was lost. */
export function markWait<E extends Error>(error: E): E {
  waits.add(error);
  return error;
}

export function failureKind(error: Error): FailureKind {
  if (losses.has(error)) return "loss";
  if (attempts.has(error)) return "attempt";
  return waits.has(error) ? "wait" : "call";
}

export const isTransient = (error: Error): boolean => transient.has(error);

/** Whether an error counts as a failure for the circuit breaker: the next request is likely to fail too. */
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
