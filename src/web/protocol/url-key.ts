// Cache keys of URLs, and the keys that a successful unsafe request invalidates.
import type { RequestInfo, ResponseHead } from "../message/exchange.ts";
import { fieldOf } from "../message/header-list.ts";

/** Separates HTTP responses from an application's other entries in the same cache. */
const PREFIX = "web:";

/**
 * The prefix of an origin's keys. `selectors`: see `selectorsOf`. A key is the full URL with unambiguous parts; GET and HEAD share it. Paths are not
 * normalized: URLs that a router treats as equal may be two entries, but two pages are never one.
 */
export function originOf(isSecure: boolean, host: string, selectors = ""): string {
  const name = host.toLowerCase();
  const origin = `${PREFIX}${isSecure ? "https" : "http"} ${name.length}:${name}`;
  return selectors === "" ? origin : `${origin}\n${selectors.length}:${selectors}`;
}

/**
 * The key for what the application's keyBuilder returned, or for the URL if it has none, and for a user. Neither leaves the
 * origin.
 */
export function builtKey(request: RequestInfo, built: string | undefined, user: string | undefined): string {
  const { isSecure, host, selectors, target } = request;
  const method = request.method === "HEAD" ? "GET" : request.method;
  const owner = user === undefined ? "" : `${user.length}:${user}`;
  const rest = built === undefined ? target : `${method} ${built}`;
  return `${originOf(isSecure, host, selectors)}\n@${owner} ${rest}`;
}

/** The key of a URL for a request without selectors; for others it names all entries of the URL. */
export function urlKey({ isSecure, host }: RequestInfo, target: string): string {
  return originOf(isSecure, host) + target;
}

/** Names all entries of a path, whatever their query. */
export function pathTag({ isSecure, host }: RequestInfo, target: string): string {
  return originOf(isSecure, host) + target.replace(/[?#].*$/s, "");
}

/** Safe methods (RFC 9110, 9.2.1). An unknown method counts as unsafe (RFC 9111, 4.4). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"]);

export const isSafe = (method: string): boolean => SAFE.has(method);

/** RFC 9111, 4.4: the target, and Location and Content-Location if they have the same origin. */
export function invalidatedTargets(request: RequestInfo, response: ResponseHead): string[] {
  if (response.status < 200 || response.status > 399) return [];
  const targets = new Set([request.target]);
  for (const field of ["location", "content-location"]) {
    const value = fieldOf(response.headers, field);
    const named = value === undefined ? undefined : resolve(request, value);
    if (named !== undefined) targets.add(named);
  }
  return [...targets];
}

function resolve({ isSecure, host, target }: RequestInfo, reference: string): string | undefined {
  try {
    const base = new URL(`${isSecure ? "https" : "http"}://${host}${target.startsWith("/") ? target : "/"}`);
    const named = new URL(reference, base);
    if (named.origin !== base.origin) return undefined;
    return named.pathname + named.search;
  } catch {
    return undefined;
  }
}
