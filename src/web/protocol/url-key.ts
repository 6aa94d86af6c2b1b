// Cache keys of URLs, and the keys that a successful unsafe request invalidates.
import type { RequestInfo, ResponseHead } from "../message/exchange.ts";
import { fieldOf } from "../message/header-list.ts";

/** Separates HTTP responses from an application's other entries in the same cache. */
const PREFIX = "web:";

/**
 * The prefix of an origin's keys. A key is the full URL with unambiguous parts; GET and HEAD share it. Paths are not
 * normalized: URLs that a router treats as equal may be two entries, but two pages are never one.
 */
export function originOf(isSecure: boolean, host: string): string {
  const name = host.toLowerCase();
  return `${PREFIX}${isSecure ? "https" : "http"} ${name.length}:${name}`;
}

export function requestKey({ isSecure, host, target }: RequestInfo): string {
  return originOf(isSecure, host) + target;
}

/** The key for what the application's keyBuilder returned. */
export function builtKey(method: string, built: string): string {
  return `${PREFIX}${method === "HEAD" ? "GET" : method} ${built}`;
}

/** Safe methods (RFC 9110, 9.2.1). An unknown method counts as unsafe (RFC 9111, 4.4). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"]);

export const isSafe = (method: string): boolean => SAFE.has(method);

/** RFC 9111, 4.4: the target, and Location and Content-Location if they have the same origin. */
export function invalidatedKeys(request: RequestInfo, response: ResponseHead): string[] {
  if (response.status < 200 || response.status > 399) return [];
  const keys = new Set([requestKey(request)]);
  for (const field of ["location", "content-location"]) {
    const value = fieldOf(response.headers, field);
    const named = value === undefined ? undefined : resolve(request, value);
    if (named !== undefined) keys.add(named);
  }
  return [...keys];
}

function resolve({ isSecure, host, target }: RequestInfo, reference: string): string | undefined {
  try {
    const base = new URL(`${isSecure ? "https" : "http"}://${host}${target.startsWith("/") ? target : "/"}`);
    const named = new URL(reference, base);
    if (named.origin !== base.origin) return undefined;
    return originOf(isSecure, host) + named.pathname + named.search;
  } catch {
    return undefined;
  }
}
