// The decisions of the HTTP cache with their reasons: for `onDecision`, and as lines on stderr with `DEBUG=xcache:http`.
import { type DebugLog, debugLog, quotedName } from "../../core/debug.ts";
import type { Exchange, RequestInfo } from "../message/exchange.ts";
import { pathOf } from "../protocol/path-exclusion.ts";
import { type HttpCacheDecision, isPromise } from "./options.ts";

type Outcome = HttpCacheDecision["outcome"];

/** Undefined if nobody wants to know. `reason`: see `HttpCacheDecision`. */
export type Decide<Request> = (
  outcome: Outcome,
  reason: string,
  exchange: Exchange<Request>,
  key?: string,
) => void;

export function decisionSink<Request>(
  listener: ((decision: HttpCacheDecision<Request>) => void) | undefined,
  reportError: (error: unknown) => void,
): Decide<Request> | undefined {
  const log = debugLog("http");
  if (listener === undefined && log === undefined) return undefined;
  return (outcome, reason, { request, native }, key) => {
    if (log !== undefined) write(log, outcome, reason, request);
    if (listener === undefined) return;
    try {
      const returned: unknown = listener({ outcome, reason, key, request: native });
      if (isPromise(returned)) returned.then(undefined, reportError);
    } catch (error) {
      reportError(error);
    }
  };
}

/** Without the query, which may hold secrets, and without any value of a field. */
function write(log: DebugLog, outcome: Outcome, reason: string, { method, target }: RequestInfo): void {
  const query = target.includes("?") ? "?..." : "";
  log(`${outcome} ${method} ${quotedName(pathOf(target) + query)}: ${explained(outcome, reason)}`);
}

/** What the reasons mean. Any other reason for a bypass is the name of a field that identifies a user. */
const MEANINGS: Readonly<Record<string, string>> = {
  method: "the method is not one of methods",
  excluded: "the path is one of excludePaths",
  skip: "skip returned true or failed",
  key: "keyBuilder or user failed",
  content: "the request has a body",
  precondition: "If-Match or If-Unmodified-Since is for the handler",
  upgrade: "the request is an upgrade",
  nested: "an outer cache is filling the same key",
  certificate: "the client has a certificate",
  fresh: "fresh",
  "uri-miss": "nothing is stored for the URL",
  "vary-miss": "nothing is stored for this variant of the URL",
  stale: "stale",
  "vary-changed": "Vary names more fields than it did; from now on they select the response",
  request: "the client asked for a newer response",
  status: "the status is not stored",
  "set-cookie": "the response has Set-Cookie",
  vary: "the response has Vary: *",
  stream: "the response is a stream, or took longer than streamAfter",
  nonce: "Content-Security-Policy has a nonce",
  malformed: "Cache-Control is malformed",
  private: "Cache-Control has private",
  "no-store": "Cache-Control has no-store",
  "no-lifetime": "the response states no lifetime, and ttl is 0",
  size: "the body is larger than maxBodyBytes",
  timeout: "the response took longer than fillTimeout",
  flushed: "the handler flushed its headers, so it streams",
  personal: "middleware further out added a cookie, private or no-store",
  truncated: "the body is not as long as Content-Length says, or is framed in two ways",
  aborted: "the response did not end: the client left, or the handler failed",
  thrown: "the handler threw",
  error: "an error handler made the response",
  callback: "a callback of the options failed",
  "should-store": "shouldStore returned false",
  unstorable: "the last response for this key was not stored, so this request did not wait for another",
  "stale-while-revalidate": "stale, while it is refreshed",
  "stale-if-error": "stale, because the handler failed",
};

function explained(outcome: Outcome, reason: string): string {
  const meaning = Object.hasOwn(MEANINGS, reason) ? MEANINGS[reason] : undefined;
  if (meaning !== undefined) return meaning;
  return outcome === "bypassed" ? `the request has ${quotedName(reason)}` : reason;
}
