// Whether a response may be stored, and for how long: the handler's own directives first (RFC 9111, 3), then the options.

import type { ResponseHead } from "../message/exchange.ts";
import { fieldOf, hasField } from "../message/header-list.ts";
import { type Directives, LONGEST_SECONDS, parseCacheControl, parseTargeted } from "./cache-control.ts";
import { initialAgeMs, statedLifetime } from "./freshness.ts";
import { varyNames } from "./vary.ts";

export interface PolicyInput {
  readonly cacheNonOk: boolean;
  /** Seconds for a response that says nothing; 0: do not store it. Asked at most once. */
  ttl(): number;
  /** Seconds, where the handler says nothing else. */
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  /** Whether a client that asks for a stale response gets it. */
  readonly obeysMaxStale: boolean;
  readonly requestedAt: number;
  readonly now: number;
}

/** On which terms a response is stored. */
export interface StoragePlan {
  /** When it was made, in milliseconds: its age counts from there. */
  readonly bornAt: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
  /** Never used stale, whoever asks (RFC 9111, 5.2.2.2). */
  readonly mustRevalidate: boolean;
  /** Seconds to add as max-age; undefined: the handler has said it. */
  readonly addedMaxAge: number | undefined;
  /** Request fields it was selected by. */
  readonly vary: readonly string[];
}

/** Why not, in a word for Cache-Status. */
export type Refusal =
  | "status"
  | "set-cookie"
  | "vary"
  | "stream"
  | "malformed"
  | "private"
  | "no-store"
  | "no-lifetime"
  | "stale";

/** Final statuses whose meaning for a cache is known (RFC 9111, 5.2.2.3; RFC 9110, 15). */
const UNDERSTOOD = new Set([
  200, 203, 204, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 412, 413,
  414, 415, 417, 421, 422, 426, 451, 500, 501, 502, 503, 504, 505,
]);

export function storagePlan(head: ResponseHead, terms: PolicyInput): StoragePlan | Refusal {
  const { status, headers } = head;
  // A 206 is a part and a 304 is none at all; neither may stand for the whole (RFC 9111, 3.3 and 3.4).
  if (status < 200 || status > 599 || status === 206 || status === 304 || status === 416) return "status";
  if (status !== 200 && !terms.cacheNonOk) return "status";
  if (hasField(headers, "set-cookie") || hasField(headers, "set-cookie2")) return "set-cookie";
  const vary = varyNames(headers);
  if (vary === undefined) return "vary";
  // Never ends, and nobody may wait for its end.
  if (fieldOf(headers, "content-type")?.trim().toLowerCase().startsWith("text/event-stream")) return "stream";
  // A valid targeted field is used in place of Cache-Control and Expires (RFC 9213, 2.2).
  const targeted = parseTargeted(fieldOf(headers, "cdn-cache-control"));
  const directives = targeted ?? parseCacheControl(fieldOf(headers, "cache-control"));
  const refusal = refusedBy(directives, status);
  if (refusal !== undefined) return refusal;
  return planFor(head, directives, targeted !== undefined, vary, terms);
}

function refusedBy(directives: Directives, status: number): Refusal | undefined {
  if (directives.isBroken) return "malformed";
  if (directives.has("private")) return "private";
  // must-understand: only who knows what the status asks of a cache may store, and for him no-store is taken back
  // (RFC 9111, 5.2.2.3).
  if (directives.has("must-understand")) return UNDERSTOOD.has(status) ? undefined : "status";
  return directives.has("no-store") ? "no-store" : undefined;
}

function planFor(
  { headers }: ResponseHead,
  directives: Directives,
  isTargeted: boolean,
  vary: readonly string[],
  terms: PolicyInput,
): StoragePlan | Refusal {
  const { requestedAt, now } = terms;
  const needsRevalidation = directives.has("no-cache");
  const stated = needsRevalidation ? 0 : statedLifetime(directives, isTargeted, headers, now);
  const lifetime = Math.min(stated ?? terms.ttl(), LONGEST_SECONDS);
  if (stated === undefined && lifetime <= 0) return "no-lifetime";
  const ageMs = initialAgeMs(headers, requestedAt, now);
  const mustRevalidate =
    needsRevalidation || directives.has("must-revalidate") || directives.has("proxy-revalidate");
  const windowMs = (name: string, otherwise: number): number => {
    if (mustRevalidate) return 0;
    // s-maxage forbids stale answers (RFC 9111, 5.2.2.10) unless the handler allows them in so many words (RFC 5861).
    const usual = directives.has("s-maxage") ? 0 : otherwise;
    return (directives.seconds(name) ?? usual) * 1000;
  };
  const plan: StoragePlan = {
    bornAt: now - ageMs,
    lifetimeMs: lifetime * 1000,
    staleWhileRevalidateMs: windowMs("stale-while-revalidate", terms.staleWhileRevalidate),
    staleIfErrorMs: windowMs("stale-if-error", terms.staleIfError),
    mustRevalidate: mustRevalidate || directives.has("s-maxage"),
    addedMaxAge: stated === undefined ? lifetime : undefined,
    vary,
  };
  return isOfUse(plan, terms) || hasValidator(headers) ? plan : "stale";
}

/**
 * A response can arrive stale. One with `max-age=1` does when a second began since its Date was written, which counts whole
 * seconds (RFC 9111, 4.2.3).
 */
function isOfUse(
  { bornAt, lifetimeMs, staleIfErrorMs, staleWhileRevalidateMs, mustRevalidate }: StoragePlan,
  { now, obeysMaxStale }: PolicyInput,
): boolean {
  if (obeysMaxStale && !mustRevalidate) return true;
  return bornAt + lifetimeMs + Math.max(staleIfErrorMs, staleWhileRevalidateMs) > now;
}

function hasValidator(headers: ResponseHead["headers"]): boolean {
  return hasField(headers, "etag") || hasField(headers, "last-modified");
}
