// Keys of URLs, and the URLs that a successful unsafe request makes invalid.
import type { RequestFacts, ResponseHead } from "../message/exchange.ts";
import { fieldOf } from "../message/header-list.ts";

/** Nothing else of an application's cache begins like this. */
const PREFIX = "web:";

/**
 * What the keys of an origin begin with. A key is the full URL, each part told apart from the next; GET and HEAD share it.
 * Nothing of the path is unified: what a router takes for the same may still be two entries, but two pages are never one.
 */
export function originOf(isSecure: boolean, host: string): string {
  const name = host.toLowerCase();
  return `${PREFIX}${isSecure ? "https" : "http"} ${name.length}:${name}`;
}

export function requestKey({ isSecure, host, target }: RequestFacts): string {
  return originOf(isSecure, host) + target;
}

/** A key that the application has built. */
export function builtKey(method: string, built: string): string {
  return `${PREFIX}${method === "HEAD" ? "GET" : method} ${built}`;
}

/** Methods that change nothing (RFC 9110, 9.2.1). Whatever is not known may (RFC 9111, 4.4). */
const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"]);

export const isSafe = (method: string): boolean => SAFE.has(method);

/** RFC 9111, 4.4: the target itself, and what the response names, as long as it is of the same origin. */
export function invalidatedKeys(request: RequestFacts, response: ResponseHead): string[] {
  if (response.status < 200 || response.status > 399) return [];
  const keys = new Set([requestKey(request)]);
  for (const field of ["location", "content-location"]) {
    const value = fieldOf(response.headers, field);
    const named = value === undefined ? undefined : resolve(request, value);
    if (named !== undefined) keys.add(named);
  }
  return [...keys];
}

function resolve({ isSecure, host, target }: RequestFacts, reference: string): string | undefined {
  try {
    const base = new URL(`${isSecure ? "https" : "http"}://${host}${target.startsWith("/") ? target : "/"}`);
    const named = new URL(reference, base);
    if (named.origin !== base.origin) return undefined;
    return originOf(isSecure, host) + named.pathname + named.search;
  } catch {
    return undefined;
  }
}
