// On which terms a response is stored: the policy, and what the callbacks of the options say. What a callback throws is told
// and passed over, and nothing stored.
import { requireTags } from "../../core/keys.ts";
import type { ResponseHead } from "../message/exchange.ts";
import { fieldOf, type HeaderList, withField } from "../message/header-list.ts";
import { type PolicyInput, type StoragePlan, storagePlan } from "../protocol/policy.ts";
import { addedControl, ownControl, tagsOfHeaders } from "../protocol/stored-headers.ts";
import type { LookupState } from "./lookup-state.ts";
import { type ResponseView, requireAnswer } from "./options.ts";
import type { StoredHead } from "./stored-response.ts";

/** The terms, or in a word why it is not stored. */
export function planFor<Request>(
  { host, exchange }: LookupState<Request>,
  response: ResponseHead,
  requestedAt: number,
): StoragePlan | string {
  // A page in place of an error is for whoever ran into it.
  if (response.isMadeOfError && response.status < 400) return "error";
  const { options } = host;
  const { ttl, varyBy } = options;
  const view = viewOf(response);
  try {
    const terms: PolicyInput = {
      cacheNonOk: options.cacheNonOk,
      ttl: () => (typeof ttl === "function" ? requireSeconds(ttl(exchange.native, view)) : ttl),
      staleWhileRevalidate: options.staleWhileRevalidate,
      staleIfError: options.staleIfError,
      obeysMaxStale: options.clientDirectives,
      requestedAt,
      now: host.now(),
    };
    const plan = storagePlan(response, terms);
    if (typeof plan === "string") return plan;
    const isWanted = requireAnswer("shouldStore", options.shouldStore?.(exchange.native, view));
    if (isWanted === false) return "should-store";
    return varyBy.length === 0 ? plan : { ...plan, vary: [...new Set([...plan.vary, ...varyBy])].sort() };
  } catch (error) {
    host.failed(error);
    return "callback";
  }
}

/** What of a stored head the plan decides. `headers`: as the handler sent them. */
export function storageOptions(
  headers: HeaderList,
  { bornAt, lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs, mustRevalidate, addedMaxAge }: StoragePlan,
  extra: string | undefined,
): Omit<StoredHead, "status" | "message" | "isOwnValidator"> {
  return {
    bornAt,
    lifetimeMs,
    staleWhileRevalidateMs,
    staleIfErrorMs,
    mustRevalidate,
    ownControl: ownControl(headers, addedMaxAge),
    headers:
      addedMaxAge === undefined
        ? headers
        : withField(headers, "Cache-Control", addedControl(headers, addedMaxAge, extra)),
  };
}

/** Those that only the response can tell; undefined: do not store it. */
export function tagsFor<Request>(
  { host, exchange }: LookupState<Request>,
  response: ResponseHead,
): readonly string[] | undefined {
  try {
    const own = host.options.tagsOf?.(exchange.native, viewOf(response)) ?? [];
    return [...requireTags(own), ...tagsOfHeaders(response.headers)];
  } catch (error) {
    host.failed(error);
    return undefined;
  }
}

function viewOf({ status, headers }: ResponseHead): ResponseView {
  return { status, header: (name) => fieldOf(headers, name.toLowerCase()) };
}

function requireSeconds(ttl: unknown): number {
  if (typeof ttl === "number" && ttl >= 0) return ttl;
  throw new TypeError(`ttl must return a number of seconds of at least 0, got ${typeof ttl}`);
}
