// A server's refusals in our own words.
import { BackendError, ConnectionError, type ErrorDetails } from "../../../core/errors.ts";
import { redactText } from "../../../core/redact.ts";
import { asRefusal, markTransient } from "../../../core/resilience/store-failure.ts";
import { ReplyError } from "./reply.ts";

/** The server is there, but cannot serve now; it or another one will. */
const PASSING = new Set([
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

/** The server serves others: a set that has no room must not keep reads away from it. */
const OF_ONE_REQUEST = new Set(["OOM", "NOPERM", "WRONGTYPE"]);
/** The server refuses all changes for now, and serves reads. */
const OF_CHANGES = new Set(["MISCONF"]);

const HINTS: Readonly<Record<string, string>> = {
  OOM: "The server is out of memory: raise maxmemory or set an eviction policy such as allkeys-lru.",
  NOPERM: "Allow the named command and keys to this user; docs/guide/kv.md lists what is needed.",
  NOAUTH: "Put the user and password into kv_url.",
  WRONGTYPE: "Something else writes under this key_prefix: use another one.",
  MISCONF: "The server cannot save its snapshot and refuses writes: see its log.",
};

export function inOurWords(thrown: Error): Error {
  if (!(thrown instanceof ReplyError)) return thrown;
  const message = `the store answered: ${redactText(thrown.message)}`;
  const details: ErrorDetails = { cause: thrown };
  if (PASSING.has(thrown.code)) return markTransient(new ConnectionError(message, details));
  const hint = HINTS[thrown.code];
  const failed = new BackendError(
    "STORE_FAILED",
    message,
    hint === undefined ? details : { ...details, hint },
  );
  if (OF_CHANGES.has(thrown.code)) return markTransient(asRefusal(failed));
  return OF_ONE_REQUEST.has(thrown.code) ? asRefusal(failed) : failed;
}
