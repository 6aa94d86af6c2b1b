// Why a connection to a remote store failed.
import { ConnectionError, OperationTimeoutError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";

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

export function notAnswered(name: string, limitMs: number): OperationTimeoutError {
  return new OperationTimeoutError(`${name} did not answer within operation_timeout (${limitMs / 1_000} s)`);
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
