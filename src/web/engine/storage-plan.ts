// Decides how a response is stored: the protocol's policy combined with the callbacks of the options. A callback that throws
// is reported, and the response is not stored.
import { OR_TEXT, toSeconds } from "../../core/duration.ts";
import { requireTags } from "../../core/keys.ts";
import type { ResponseHead } from "../message/exchange.ts";
import { fieldOf, type HeaderList, withField } from "../message/header-list.ts";
import { type PolicyInput, type StoragePlan, storagePlan } from "../protocol/policy.ts";
import { addedControl, ownControl, tagsOfHeaders, withVary } from "../protocol/stored-headers.ts";
import type { LookupState } from "./lookup-state.ts";
import { type CheckedOptions, type ResponseView, requireSync } from "./options.ts";
import type { StoredHead } from "./stored-response.ts";

/** The plan, or the reason not to store the response, as `detail` of Cache-Status. */
export function planFor<Request>(
  { host, exchange }: LookupState<Request>,
  response: ResponseHead,
  requestedAt: number,
): StoragePlan | string {
  // A success status produced by an error handler is meant for this client only.
  if (response.isFromErrorHandler && response.status < 400) return "error";
  const { options } = host;
  const { ttl, varyBy } = options;
  const view = viewOf(response);
  try {
    const input: PolicyInput = {
      cacheNonOk: options.cacheNonOk,
      ttl: () => (typeof ttl === "function" ? requireSeconds(ttl(exchange.native, view)) : ttl),
      staleWhileRevalidate: options.staleWhileRevalidate,
      staleIfError: options.staleIfError,
      obeysMaxStale: options.clientDirectives,
      requestedAt,
      now: host.now(),
    };
    const plan = storagePlan(response, input);
    if (typeof plan === "string") return plan;
    const isWanted = requireSync("shouldStore", options.shouldStore?.(exchange.native, view));
    if (isWanted === false) return "should-store";
    // Requests with a cookie do not reach the cache: it does not select among the others.
    const own = options.bypassesCookies ? plan.vary.filter((name) => name !== "cookie") : plan.vary;
    const implied = [...(exchange.varyBy ?? []), ...(isEncoded(response.headers) ? ["accept-encoding"] : [])];
    return { ...plan, vary: [...new Set([...own, ...varyBy, ...implied])].sort() };
  } catch (error) {
    host.reportError(error);
    return "callback";
  }
}

/** Not every client can read it, even if its Vary does not say so. */
function isEncoded(headers: HeaderList): boolean {
  const encoding = fieldOf(headers, "content-encoding");
  return encoding !== undefined && encoding.trim().toLowerCase() !== "identity";
}

/** The parts of a stored head that the plan decides. `headers` are the handler's. */
export function storageOptions(
  headers: HeaderList,
  { bornAt, lifetimeMs, staleWhileRevalidateMs, staleIfErrorMs, mustRevalidate, addedMaxAge }: StoragePlan,
  extra: string | undefined,
  vary: readonly string[],
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
        ? withVary(headers, vary)
        : withField(withVary(headers, vary), "Cache-Control", addedControl(headers, addedMaxAge, extra)),
  };
}

/** The names that are added to Vary: what selects the response, and Cookie along with a lifetime. */
export function addedVary(
  { varyBy, varyCookie }: Pick<CheckedOptions<never>, "varyBy" | "varyCookie">,
  { addedMaxAge }: StoragePlan,
): readonly string[] {
  return varyCookie && addedMaxAge !== undefined ? [...varyBy, "Cookie"] : varyBy;
}

/** Tags taken from the response, or undefined if it must not be stored. */
export function tagsFor<Request>(
  { host, exchange }: LookupState<Request>,
  response: ResponseHead,
): readonly string[] | undefined {
  try {
    const own = host.options.tagsOf?.(exchange.native, viewOf(response)) ?? [];
    return [...requireTags(own), ...tagsOfHeaders(response.headers)];
  } catch (error) {
    host.reportError(error);
    return undefined;
  }
}

function viewOf({ status, headers }: ResponseHead): ResponseView {
  return { status, header: (name) => fieldOf(headers, name.toLowerCase()) };
}

function requireSeconds(ttl: unknown): number {
  const seconds = toSeconds(ttl);
  if (typeof seconds === "number" && seconds >= 0) return seconds;
  throw new TypeError(`ttl must return a number of seconds of at least 0, ${OR_TEXT}, got ${typeof ttl}`);
}
