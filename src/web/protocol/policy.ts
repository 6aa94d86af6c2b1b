// Storage policy: whether and how long a response may be stored. The handler's directives come first (RFC 9111, 3), then the options.

import type { ResponseHead } from "../message/exchange.ts";
import { fieldOf, type HeaderList, hasField } from "../message/header-list.ts";
import { type Directives, LONGEST_SECONDS, parseCacheControl, parseTargeted } from "./cache-control.ts";
import { initialAgeMs, statedLifetime } from "./freshness.ts";
import { varyNames } from "./vary.ts";

export interface PolicyInput {
  readonly cacheNonOk: boolean;
  /** Seconds for a response that states no lifetime; 0: do not store it. Called at most once. */
  ttl(): number;
  /** Default stale windows in seconds; the handler's directives override them. */
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  /** Whether clients may request stale responses with max-stale. */
  readonly obeysMaxStale: boolean;
  readonly requestedAt: number;
  readonly now: number;
}

/** How a response is stored. */
export interface StoragePlan {
  /** When the response was generated, in milliseconds: its age counts from here. */
  readonly bornAt: number;
  readonly lifetimeMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly staleIfErrorMs: number;
  /** Never served stale, not even at a client's request (RFC 9111, 5.2.2.2). */
  readonly mustRevalidate: boolean;
  /** Seconds to add as max-age, or undefined if the handler stated a lifetime. */
  readonly addedMaxAge: number | undefined;
  /** Request fields that selected the response. */
  readonly vary: readonly string[];
}

/** Why a response is not stored, as `detail` of Cache-Status. */
export type Refusal =
  | "status"
  | "set-cookie"
  | "vary"
  | "stream"
  | "nonce"
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

/** Types of content that never end, so no request may wait for their end. */
const STREAM = /^\s*(?:text\/event-stream|multipart\/x-mixed-replace)/i;

/** Statuses that concern one client or one moment: stored only if the handler says for how long. */
const isFleeting = (status: number): boolean =>
  status === 401 || status === 403 || status === 407 || status === 429 || status >= 500;

/** The page contains the nonce of this response, which must not be used twice (CSP Level 3, 7.1). */
function hasNonce(headers: HeaderList): boolean {
  return ["content-security-policy", "content-security-policy-report-only"].some((name) =>
    fieldOf(headers, name)?.toLowerCase().includes("'nonce-"),
  );
}

export function storagePlan(head: ResponseHead, input: PolicyInput): StoragePlan | Refusal {
  const { status, headers } = head;
  // 206, 304 and 416 do not carry the complete representation (RFC 9111, 3.3 and 3.4).
  if (status < 200 || status > 599 || status === 206 || status === 304 || status === 416) return "status";
  if (status !== 200 && !input.cacheNonOk) return "status";
  if (hasField(headers, "set-cookie") || hasField(headers, "set-cookie2")) return "set-cookie";
  const vary = varyNames(headers);
  if (vary === undefined) return "vary";
  if (STREAM.test(fieldOf(headers, "content-type") ?? "")) return "stream";
  if (hasNonce(headers)) return "nonce";
  // A valid targeted field replaces Cache-Control and Expires (RFC 9213, 2.2).
  const targeted = parseTargeted(fieldOf(headers, "cdn-cache-control"));
  const directives = targeted ?? parseCacheControl(fieldOf(headers, "cache-control"));
  const refusal = refusedBy(directives, status);
  if (refusal !== undefined) return refusal;
  return planFor(head, directives, targeted !== undefined, vary, input);
}

/** Whether the fields as sent keep a response from other clients, where those that were judged did not. */
export function isPersonal(sent: HeaderList, judged: HeaderList): boolean {
  if (hasField(sent, "set-cookie") || hasField(sent, "set-cookie2") || hasNonce(sent)) return true;
  const control = fieldOf(sent, "cache-control");
  if (control === fieldOf(judged, "cache-control")) return false;
  const directives = parseCacheControl(control);
  return directives.isBroken || directives.has("private") || directives.has("no-store");
}

function refusedBy(directives: Directives, status: number): Refusal | undefined {
  if (directives.isBroken) return "malformed";
  if (directives.has("private")) return "private";
  // must-understand: a cache that understands the status ignores no-store, any other must not store (RFC 9111, 5.2.2.3).
  if (directives.has("must-understand")) return UNDERSTOOD.has(status) ? undefined : "status";
  return directives.has("no-store") ? "no-store" : undefined;
}

function planFor(
  { status, headers }: ResponseHead,
  directives: Directives,
  isTargeted: boolean,
  vary: readonly string[],
  input: PolicyInput,
): StoragePlan | Refusal {
  const { requestedAt, now } = input;
  const needsRevalidation = directives.has("no-cache");
  const stated = needsRevalidation ? 0 : statedLifetime(directives, isTargeted, headers, now);
  if (stated === undefined && isFleeting(status)) return "status";
  const lifetime = Math.min(stated ?? input.ttl(), LONGEST_SECONDS);
  if (stated === undefined && lifetime <= 0) return "no-lifetime";
  const ageMs = initialAgeMs(headers, requestedAt, now);
  const mustRevalidate =
    needsRevalidation || directives.has("must-revalidate") || directives.has("proxy-revalidate");
  const windowMs = (name: string, otherwise: number): number => {
    if (mustRevalidate) return 0;
    // s-maxage forbids stale responses (RFC 9111, 5.2.2.10) unless the handler allows them explicitly (RFC 5861).
    const usual = directives.has("s-maxage") ? 0 : otherwise;
    return (directives.seconds(name) ?? usual) * 1000;
  };
  const plan: StoragePlan = {
    bornAt: now - ageMs,
    lifetimeMs: lifetime * 1000,
    staleWhileRevalidateMs: windowMs("stale-while-revalidate", input.staleWhileRevalidate),
    staleIfErrorMs: windowMs("stale-if-error", input.staleIfError),
    mustRevalidate: mustRevalidate || directives.has("s-maxage"),
    addedMaxAge: stated === undefined ? lifetime : undefined,
    vary,
  };
  return isUsable(plan, input) || hasValidator(headers) ? plan : "stale";
}

/**
 * A response can be stale on arrival. `max-age=1` is enough: Date has whole seconds, so the response is stale once the next
 * second has begun (RFC 9111, 4.2.3).
 */
function isUsable(
  { bornAt, lifetimeMs, staleIfErrorMs, staleWhileRevalidateMs, mustRevalidate }: StoragePlan,
  { now, obeysMaxStale }: PolicyInput,
): boolean {
  if (obeysMaxStale && !mustRevalidate) return true;
  return bornAt + lifetimeMs + Math.max(staleIfErrorMs, staleWhileRevalidateMs) > now;
}

function hasValidator(headers: ResponseHead["headers"]): boolean {
  return hasField(headers, "etag") || hasField(headers, "last-modified");
}
