// Keys of URLs, and the URLs that a successful unsafe request makes invalid.
import type { RequestFacts, ResponseHead } from "./exchange.ts";
import { fieldOf } from "./header-list.ts";

/** Nothing else of an application's cache begins like this. */
const PREFIX = "web:";

/**
 * The full URL, each part told apart from the next. GET and HEAD share it. Nothing of the path is unified: what a router
 * takes for the same may still be two entries, but two pages are never one.
 */
function urlKey(isSecure: boolean, host: string, target: string): string {
  if (host !== latest.host || isSecure !== latest.isSecure) {
    const name = host.toLowerCase();
    const origin = `${PREFIX}${isSecure ? "https" : "http"} ${name.length}:${name}`;
    latest = { isSecure, host, origin, keys: new Map() };
  }
  return latest.keys.get(target) ?? newKey(target);
}

/** Most requests of a server have the same origin as the one before, and many the same target as one of the last. */
let latest = { isSecure: false, host: "", origin: `${PREFIX}http 0:`, keys: new Map<string, string>() };
/** A text that was looked up before is found faster than one put together anew. */
const MOST_KEYS = 1_024;
const LONGEST_KNOWN = 256;

function newKey(target: string): string {
  const { origin, keys } = latest;
  const key = origin + target;
  if (target.length <= LONGEST_KNOWN) {
    if (keys.size >= MOST_KEYS) keys.clear();
    keys.set(target, key);
  }
  return key;
}

export function requestKey({ isSecure, host, target }: RequestFacts): string {
  return urlKey(isSecure, host, target);
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
    return urlKey(isSecure, host, named.pathname + named.search);
  } catch {
    return undefined;
  }
}
