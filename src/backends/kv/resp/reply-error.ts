// Converts error replies of a server into XCacheErrors.
import { BackendError, ConnectionError, type ErrorDetails } from "../../../core/errors.ts";
import { redactText } from "../../../core/redact.ts";
import { asRefusal, markTransient } from "../../../core/resilience/store-failure.ts";
import { ReplyError } from "./reply.ts";

/** The server cannot serve at the moment; it or another one will soon. */
const TRANSIENT = new Set([
  "LOADING",
  "MASTERDOWN",
  "READONLY",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "MOVED",
  "ASK",
  "NOREPLICAS",
  "BUSY",
]);

/** Only this request was refused: a write that ran out of memory must not open the breaker for reads. */
const REFUSES_REQUEST = new Set(["OOM", "NOPERM", "WRONGTYPE"]);
/** The server refuses all writes for now but serves reads. */
const REFUSES_WRITES = new Set(["MISCONF"]);

const HINTS: Readonly<Record<string, string>> = {
  OOM: "The server is out of memory: raise maxmemory or set an eviction policy such as allkeys-lru.",
  NOPERM: "Allow the named command and keys to this user; docs/guide/kv.md lists what is needed.",
  NOAUTH: "Give the user and password, in kv_url or as username and password.",
  WRONGTYPE: "Something else writes under this key_prefix: use another one.",
  MISCONF: "The server cannot save its snapshot and refuses writes: see its log.",
};

export function toXCacheError(error: Error): Error {
  if (!(error instanceof ReplyError)) return error;
  const message = `the store answered: ${redactText(error.message)}`;
  const details: ErrorDetails = { cause: error };
  if (TRANSIENT.has(error.code)) return markTransient(new ConnectionError(message, details));
  const hint = HINTS[error.code];
  const failed = new BackendError(
    "STORE_FAILED",
    message,
    hint === undefined ? details : { ...details, hint },
  );
  if (REFUSES_WRITES.has(error.code)) return markTransient(asRefusal(failed));
  return REFUSES_REQUEST.has(error.code) ? asRefusal(failed) : failed;
}
