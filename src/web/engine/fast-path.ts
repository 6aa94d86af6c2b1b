// The way of nearly every request: what the cache has at hand and is fresh is the answer, without a promise or a visit.
import { COARSE_LAG_MS } from "../../core/clock.ts";
import type { Exchange } from "../message/exchange.ts";
import { isFilling } from "../message/nested-caches.ts";
import type { LookupHost } from "./lookup-state.ts";
import type { ReadyResponse } from "./ready-response.ts";
import type { RequestDirectives } from "./request-directives.ts";
import type { RequestTarget } from "./request-target.ts";
import type { StoredValue } from "./stored-response.ts";

/** Of all requests that were answered so. */
export const DONE = Promise.resolve();

/** Whether the request is answered. */
export function tryFastPath<Request>(
  host: LookupHost<Request>,
  exchange: Exchange<Request>,
  directives: RequestDirectives,
  address: RequestTarget,
): boolean {
  const { look, options } = host;
  const { request } = exchange;
  const { key } = address;
  if (look === undefined || !isUsual(exchange, directives)) return false;
  if (isFilling(request.message, options.cache, key)) return false;
  const value = look.peek(key);
  if (value === undefined) return false;
  const stored = preparedAt(address, value, host);
  if (stored === undefined) return false;
  const { isPlain } = request;
  let now = host.coarseNow();
  // Of what somebody else wrote, the end may be no number: then it is not far.
  const isFarFromEnd = now + COARSE_LAG_MS < stored.freshUntil;
  if (!isPlain || !isFarFromEnd) {
    now = host.now();
    if (directives.use(stored, now) !== "fresh") return false;
  }
  look.used(key);
  host.told("hit", key, exchange.native);
  const text = value as StoredValue;
  exchange.reply(isPlain ? stored.whole(text, now) : stored.reply(request, text, now));
  return true;
}

/** Whether all of a response is wanted, from wherever it comes. */
function isUsual({ request }: Exchange, directives: RequestDirectives): boolean {
  if (request.method === "HEAD") return false;
  return request.isPlain || (!directives.onlyIfCached && request.header("range") === undefined);
}

function preparedAt(
  address: RequestTarget,
  value: unknown,
  host: LookupHost<never>,
): ReadyResponse | undefined {
  if (address.prepared?.isOf(value)) return address.prepared;
  address.prepared = host.prepared.of(address.key, value);
  return address.prepared;
}
