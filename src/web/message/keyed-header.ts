// Request fields that are always part of the key, because frameworks and handlers answer differently because of them and a client
// may send any value; and unkeyed ones, by which one client could poison the cache for the others (web cache poisoning).
import { createHash } from "node:crypto";
import type { RequestInfo } from "./exchange.ts";

const X = "x".charCodeAt(0);
const LONGEST = 256;

/**
 * Whether the field is part of every key: what a proxy says about host, scheme, port and path, and the mark of a request by a
 * script. The addresses of X-Forwarded-For are not: every client has another one. `name` is in lower case.
 */
export function isKeyField(name: string): boolean {
  if (name.charCodeAt(0) !== X) return false;
  return name === "x-requested-with" || (name.startsWith("x-forwarded-") && name !== "x-forwarded-for");
}

/**
 * Whether the Host field names another host than the one in the key. HTTP/2, an absolute target and servers that make up URLs
 * allow it (RFC 9113, 8.3.1), and frameworks read either.
 */
export function hasOtherHost(request: Pick<RequestInfo, "header" | "host">): boolean {
  const given = request.header("host");
  return given !== undefined && given.toLowerCase() !== request.host.toLowerCase();
}

/** The key fields of a request with their values, and a Host field of its own, as one string; empty if it has none. */
export function selectorsOf(request: Pick<RequestInfo, "header" | "headerNames" | "host">): string {
  let text = "";
  if (hasOtherHost(request)) {
    const host = request.header("host")!.toLowerCase();
    text += `host:${host.length}:${host}`;
  }
  for (const name of [...request.headerNames()].filter(isKeyField).sort()) {
    const value = request.header(name) ?? "";
    text += `${name}:${value.length}:${value}`;
  }
  return text.length <= LONGEST ? text : `#${createHash("sha256").update(text).digest("base64url")}`;
}

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
