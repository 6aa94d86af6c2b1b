// Unkeyed request fields: a handler may read them although they are not part of the key, so one client could poison the cache
// for the others (web cache poisoning).
import type { RequestInfo } from "../message/exchange.ts";
import { isKeyField } from "../message/keyed-header.ts";

/** Fields that override host, scheme, path or method in proxies and frameworks, and are not part of the key. */
const OVERRIDING = new Set([
  "forwarded",
  "x-forwarded",
  "x-original-url",
  "x-original-host",
  "x-rewrite-url",
  "x-host",
  "x-http-host-override",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-scheme",
  "x-url-scheme",
  "front-end-https",
]);

/** Conditions and ranges concern one client: the response that fills the cache must be complete (RFC 9111, 4.3). */
const CONDITIONS = new Set([
  "if-none-match",
  "if-modified-since",
  "if-match",
  "if-unmodified-since",
  "if-range",
  "range",
]);

/** Fields without which the request would not be valid. */
const ESSENTIAL = new Set([
  "host",
  ":authority",
  ":method",
  ":path",
  ":scheme",
  "connection",
  "content-length",
]);

/** The fields to hide from a handler that fills the cache. `keyed`: the fields in the key, in lower case. */
export function unkeyedHeaders(request: RequestInfo, keyed: ReadonlySet<string>, strict: boolean): string[] {
  const hidden: string[] = [];
  for (const name of request.headerNames()) {
    if (CONDITIONS.has(name)) hidden.push(name);
    else if (keyed.has(name) || ESSENTIAL.has(name) || isKeyField(name)) continue;
    else if (strict || OVERRIDING.has(name)) hidden.push(name);
  }
  return hidden;
}
