// Why a server cannot be used, and what its error replies mean.
import {
  BackendError,
  CodecError,
  ConnectionError,
  OperationTimeoutError,
  UnsupportedError,
  type XCacheError,
} from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { asRefusal } from "../../core/resilience/store-failure.ts";
import type { MetaReply } from "./meta-reader.ts";

const ADDRESS = "Check that memcached runs at this address; TLS and SASL are not supported.";
const CONNECTIONS = "Start memcached with a larger -c, or lower pool_size.";
const SIZE = "Store less under one key, turn compression on, or start memcached with a larger -I.";

export function notMemcached(name: string, cause: unknown): ConnectionError {
  return new ConnectionError(`${name} does not speak the memcached protocol`, {
    cause,
    hint: ADDRESS,
  });
}

/** Why an open connection cannot be used. An error reply to its preparation would mean nothing to the waiting calls. */
export function unusable(name: string, thrown: unknown): XCacheError {
  const error = toError(thrown);
  const isClear =
    error instanceof ConnectionError ||
    error instanceof OperationTimeoutError ||
    error instanceof UnsupportedError;
  if (isClear) return error;
  const { hint } = error as Partial<XCacheError>;
  const details = hint === undefined ? { cause: error } : { cause: error, hint };
  return new ConnectionError(`${name} cannot be used: ${error.message}`, details);
}

export function tooOld(name: string, version: string): UnsupportedError {
  return new UnsupportedError(`${name} runs memcached ${version}, which is too old`, {
    hint: "Use memcached 1.6.13 or later: those before it fail at compare-and-swap.",
  });
}

export function withoutCas(name: string): UnsupportedError {
  return new UnsupportedError(`${name} was started without compare-and-swap`, {
    hint: "Start memcached without -C (--disable-cas).",
  });
}

/** Before anything of it is sent. */
export function tooLarge(length: number, most: number): CodecError {
  return new CodecError(
    "VALUE_TOO_LARGE",
    `an entry of ${length} bytes was refused: the server takes at most ${most} bytes`,
    { hint: SIZE },
  );
}

const isRefusal = (code: string): boolean =>
  code === "SERVER_ERROR" || code === "CLIENT_ERROR" || code === "ERROR";

/** The error that a reply stands for; undefined for any other reply. */
export function refusalIn({ code, text }: MetaReply): XCacheError | undefined {
  if (!isRefusal(code)) return undefined;
  const words = `the store answered: ${code}${text === "" ? "" : ` ${text}`}`;
  if (/too large/i.test(text)) return new CodecError("VALUE_TOO_LARGE", words, { hint: SIZE });
  if (/out of memory/i.test(text)) {
    const hint = "The server is full: give it more memory (-m), or let it evict (start it without -M).";
    return asRefusal(new BackendError("STORE_FAILED", words, { hint }));
  }
  if (/unauthenticated|authentication/i.test(text)) return new ConnectionError(words, { hint: ADDRESS });
  if (/too many open connections/i.test(text)) return new ConnectionError(words, { hint: CONNECTIONS });
  return new BackendError("STORE_FAILED", words);
}
