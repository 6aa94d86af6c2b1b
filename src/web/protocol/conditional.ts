// Conditional requests answered from a stored response (RFC 9110, 13; RFC 9111, 4.3.2).

import type { RequestInfo } from "../message/exchange.ts";
import { filterFields, type HeaderList } from "../message/header-list.ts";
import { noneMatchHolds } from "./etag.ts";
import { parseHttpDate } from "./http-date.ts";

/** The fields of a stored response that conditions are compared with. */
export interface Validators {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  readonly date: string | undefined;
}

/** Whether the client already has this representation. If-Modified-Since counts only without If-None-Match. */
export function isNotModified(request: RequestInfo, validators: Validators, now: number): boolean {
  const noneMatch = request.header("if-none-match");
  if (noneMatch !== undefined) {
    if (validators.etag === undefined) return noneMatch.trim() === "*";
    return noneMatchHolds(noneMatch, validators.etag);
  }
  const since = request.header("if-modified-since");
  if (since === undefined) return false;
  const held = parseHttpDate(since, now);
  // Date replaces a missing Last-Modified (RFC 9111, 4.3.2).
  const known = validators.lastModified ?? validators.date;
  const changed = known === undefined ? undefined : parseHttpDate(known, now);
  return held !== undefined && changed !== undefined && changed <= held;
}

/** Whether the request has a precondition that only the handler can evaluate: it may fail with 412. */
export function hasPrecondition(request: RequestInfo): boolean {
  return request.header("if-match") !== undefined || request.header("if-unmodified-since") !== undefined;
}

/** The required ones, and those that servers of files send with it. */
const IN_304 = new Set([
  "accept-ranges",
  "cache-control",
  "cdn-cache-control",
  "content-location",
  "date",
  "etag",
  "expires",
  "last-modified",
  "vary",
]);

/** The fields of a 304 (RFC 9110, 15.4.5), and the CORS fields a browser needs to expose the response. */
export function notModifiedHeaders(headers: HeaderList): string[] {
  return filterFields(headers, (name) => IN_304.has(name) || name.startsWith("access-control-"));
}
