// The fast path: a fresh response that the cache can return synchronously is sent without a promise or a Lookup.
import { COARSE_LAG_MS } from "../../core/clock.ts";
import { type Exchange, isFilling } from "../message/exchange.ts";
import type { LookupHost } from "./lookup-state.ts";
import type { ReadyResponse } from "./ready-response.ts";
import type { RequestDirectives } from "./request-directives.ts";
import type { RequestTarget } from "./request-target.ts";
import type { StoredValue } from "./stored-response.ts";

/** The shared result of every request answered on the fast path. */
export const DONE = Promise.resolve();

/** Returns whether the request was answered. */
export function tryFastPath<Request>(
  host: LookupHost<Request>,
  exchange: Exchange<Request>,
  directives: RequestDirectives,
  target: RequestTarget,
): boolean {
  const { syncPeek, options } = host;
  const { request } = exchange;
  const { key } = target;
  if (syncPeek === undefined || !wantsFullResponse(exchange, directives)) return false;
  if (isFilling(request.message, options.cache, key)) return false;
  const value = syncPeek.peek(key);
  if (value === undefined) return false;
  const stored = readyAt(target, value, host);
  if (stored === undefined) return false;
  const { isPlain } = request;
  let now = host.coarseNow();
  // freshUntil may be NaN if other code wrote the value; the comparison is then false and the exact check decides.
  const isClearlyFresh = now + COARSE_LAG_MS < stored.freshUntil;
  if (!isPlain || !isClearlyFresh) {
    now = host.now();
    if (directives.use(stored, now) !== "fresh") return false;
  }
  syncPeek.used(key);
  host.emit("hit", key, exchange, "fresh");
  const text = value as StoredValue;
  exchange.reply(isPlain ? stored.whole(text, now) : stored.reply(request, text, now));
  return true;
}

/** True if the request wants the whole response and does not mind where it comes from. */
function wantsFullResponse({ request }: Exchange, directives: RequestDirectives): boolean {
  if (request.method === "HEAD") return false;
  return request.isPlain || (!directives.onlyIfCached && request.header("range") === undefined);
}

function readyAt(target: RequestTarget, value: unknown, host: LookupHost<never>): ReadyResponse | undefined {
  if (target.ready?.isBuiltFrom(value)) return target.ready;
  target.ready = host.readyResponses.of(target.key, value);
  return target.ready;
}
