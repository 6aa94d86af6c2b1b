// Why a connection to a remote store failed.
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { isLoss, markWait } from "../../core/resilience/store-failure.ts";

export const NEEDS_NO_TLS = "Check whether the server speaks TLS at this port, or use redis://.";

/** `hint` undefined: none. */
export const withHint = (hint: string | undefined): { hint?: string } => (hint === undefined ? {} : { hint });

/** It could not be opened or was lost. `cause` undefined: the server closed it. */
export function lost(name: string, cause: Error | undefined, hint?: string): ConnectionError {
  const reason = cause === undefined ? "it closed the connection" : messageOf(cause);
  return new ConnectionError(`${name} cannot be reached: ${reason}`, {
    ...withHint(hint),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** A host with several addresses fails with one error for each and an empty message of its own. */
function messageOf(cause: Error): string {
  const parts = cause instanceof AggregateError ? cause.errors.map((each) => toError(each).message) : [];
  return parts.join("; ") || cause.message || String(cause);
}

/** `isAccepted`: the server accepted the connection, but its TLS handshake did not finish. */
export function connectTimedOut(name: string, limitMs: number, isAccepted: boolean): OperationTimeoutError {
  const what = isAccepted ? "did not answer in TLS" : "did not accept a connection";
  return new OperationTimeoutError(
    `${name} ${what} within connect_timeout (${limitMs / 1_000} s)`,
    withHint(isAccepted ? NEEDS_NO_TLS : undefined),
  );
}

/** It accepted the connection and did not answer the login. */
export function notGreeted(name: string, limitMs: number): OperationTimeoutError {
  return new OperationTimeoutError(`${name} did not answer within connect_timeout (${limitMs / 1_000} s)`);
}

/** The type of a TLS record that reports a failure. */
export const TLS_ALERT = 21;

export function speaksPlain(name: string): ConnectionError {
  return new ConnectionError(`${name} does not speak TLS: it answers a plain connection`, {
    hint: "Use redis:// for this port, or the port at which the server speaks TLS.",
  });
}

/** Its password function or its TLS files took too long. */
export function notPrepared(name: string, limitMs: number): OperationTimeoutError {
  return new OperationTimeoutError(
    `the credentials for ${name} were not there within connect_timeout (${limitMs / 1_000} s)`,
    { hint: "Check the function given as `password`." },
  );
}

/** For a command without effect: repeats it once if its connection was lost. */
export async function repeatedIfLost<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !isLoss(error)) throw error;
    return work();
  }
}

export function notAnswered(name: string, limitMs: number): OperationTimeoutError {
  return new OperationTimeoutError(`${name} did not answer within operation_timeout (${limitMs / 1_000} s)`);
}

/** No connection in time. `last`: why the latest attempt failed; undefined while the first one is in progress. */
export function notConnected(last: XCacheError | undefined): XCacheError {
  const words = "no connection to the store within operation_timeout";
  if (last === undefined) return new OperationTimeoutError(words);
  const all = `${words}; the latest attempt: ${last.message}`;
  const details = { hint: last.hint, cause: last };
  return markWait(
    last instanceof OperationTimeoutError
      ? new OperationTimeoutError(all, details)
      : new ConnectionError(all, details),
  );
}

/** A call came after disconnect(), or was in flight. */
export function disconnected(): ConnectionError {
  return new ConnectionError("the cache was disconnected", { code: "DISCONNECTED" });
}

export function tlsUnusable(name: string, cause: unknown): ConnectionError {
  return new ConnectionError(`TLS to ${name} cannot be set up: ${toError(cause).message}`, {
    cause,
    hint: "Check that tls_ca_file, tls_cert_file and tls_key_file are PEM and belong together.",
  });
}
