// Why there is no connection, in our own words, and what to do about it.
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { ReplyError } from "../resp/reply.ts";
import { type Endpoint, nameOf } from "./endpoint.ts";

const LOGIN = "Check the user and password in kv_url.";
const AUTHORITY = "Name the authority that signed the server's certificate with tls_ca_file.";
const NEEDS_TLS = "Check the address and whether it needs TLS (rediss://).";
const NEEDS_NO_TLS = "Check whether the server speaks TLS at this port, or use redis://.";
const NEWER = "xcache needs RESP3: Redis 6 or later, or any Valkey.";

/** By the code of a system error, of TLS or of the server. */
const HINTS: Readonly<Record<string, string>> = {
  WRONGPASS: LOGIN,
  NOAUTH: LOGIN,
  NOPERM: "Allow the command named in the message to the user in kv_url.",
  NOPROTO: NEWER,
  ERR_SSL_WRONG_VERSION_NUMBER: NEEDS_NO_TLS,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "Use a host name that the server's certificate carries, or give it as tls_server_name.",
  SELF_SIGNED_CERT_IN_CHAIN: AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: AUTHORITY,
};

const REFUSALS: readonly (readonly [words: RegExp, hint: string])[] = [
  [/unknown command .?HELLO/i, NEWER],
  [/DB index/i, "Check the database number in kv_url; a server has 16 unless it is told otherwise."],
];

const withHint = (hint: string | undefined): { hint?: string } => (hint === undefined ? {} : { hint });

/** It could not be had, or is gone; `greeted` says whether the server ever answered. */
export function lost(endpoint: Endpoint, cause: Error | undefined, greeted: boolean): ConnectionError {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? "";
  const cutShort = !greeted && (cause === undefined || code === "ECONNRESET" || code === "EPIPE");
  const why = cause === undefined ? "it closed the connection" : wordsOf(cause);
  return new ConnectionError(`${nameOf(endpoint)} cannot be reached: ${why}`, {
    ...withHint(HINTS[code] ?? (cutShort ? NEEDS_TLS : undefined)),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** A host with several addresses fails with an error for each, and no words of its own. */
function wordsOf(cause: Error): string {
  const parts = cause instanceof AggregateError ? cause.errors.map((each) => toError(each).message) : [];
  return parts.join("; ") || cause.message || String(cause);
}

export function notResp(endpoint: Endpoint, cause: unknown): ConnectionError {
  return new ConnectionError(`what answers at ${nameOf(endpoint)} does not speak the protocol of Redis`, {
    cause,
    hint: NEEDS_TLS,
  });
}

/** `password`: what was sent to log in, which the server's own words may repeat. */
export function refused(endpoint: Endpoint, thrown: unknown, password?: string): XCacheError {
  if (!(thrown instanceof ReplyError)) return thrown as XCacheError;
  const hint = HINTS[thrown.code] ?? REFUSALS.find(([words]) => words.test(thrown.message))?.[1];
  const cause = without(password, thrown);
  return new ConnectionError(`${nameOf(endpoint)} refused the connection: ${cause.message}`, {
    ...withHint(hint),
    cause,
  });
}

/** The first word is the server's own, and what others go by: a password may be an ordinary word. */
function without(password: string | undefined, error: ReplyError): ReplyError {
  if (!password || !error.message.includes(password)) return error;
  const [code = ""] = /^[A-Z]+(?= |$)/.exec(error.message) ?? [];
  return new ReplyError(code + error.message.slice(code.length).replaceAll(password, "***"));
}

/** An operation came after disconnect(), or was under way. */
export function disconnected(): ConnectionError {
  return new ConnectionError("the cache was disconnected", { code: "DISCONNECTED" });
}

export function tlsUnusable(endpoint: Endpoint, cause: unknown): ConnectionError {
  return new ConnectionError(`TLS to ${nameOf(endpoint)} cannot be set up: ${toError(cause).message}`, {
    cause,
    hint: "Check that tls_ca_file, tls_cert_file and tls_key_file are PEM and belong together.",
  });
}

/** `accepted`: the server took the connection, but not the TLS on it. */
export function notAccepted(endpoint: Endpoint, limitMs: number, accepted: boolean): OperationTimeoutError {
  const what = accepted ? "did not answer in TLS" : "did not accept a connection";
  return new OperationTimeoutError(
    `${nameOf(endpoint)} ${what} within connect_timeout (${limitMs / 1000} s)`,
    withHint(accepted ? NEEDS_NO_TLS : undefined),
  );
}

export function notAnswered(endpoint: Endpoint, limitMs: number): OperationTimeoutError {
  return new OperationTimeoutError(
    `${nameOf(endpoint)} did not answer within operation_timeout (${limitMs / 1000} s)`,
  );
}
