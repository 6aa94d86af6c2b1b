// Request fields that a handler may read although they are not in the key: whoever sends one would choose what others get.
import type { RequestFacts } from "../message/exchange.ts";

/** Fields by which proxies and frameworks override host, scheme, address, path and method. */
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
  "x-real-ip",
  "x-client-ip",
  "x-scheme",
  "x-url-scheme",
  "front-end-https",
]);

/** Conditions and ranges are the client's own: what fills the cache must be whole (RFC 9111, 4.3). */
const CONDITIONS = new Set([
  "if-none-match",
  "if-modified-since",
  "if-match",
  "if-unmodified-since",
  "if-range",
  "range",
]);

/** What a request has to have to be one. */
const ESSENTIAL = new Set([
  "host",
  ":authority",
  ":method",
  ":path",
  ":scheme",
  "connection",
  "content-length",
]);

/** Names of the fields a handler that fills the cache does not get to see. `keyed`: part of the key, in lower case. */
export function unkeyedHeaders(request: RequestFacts, keyed: ReadonlySet<string>, strict: boolean): string[] {
  const hidden: string[] = [];
  for (const name of request.headerNames()) {
    if (CONDITIONS.has(name)) hidden.push(name);
    else if (keyed.has(name) || ESSENTIAL.has(name)) continue;
    else if (strict || OVERRIDING.has(name) || name.startsWith("x-forwarded-")) hidden.push(name);
  }
  return hidden;
}
