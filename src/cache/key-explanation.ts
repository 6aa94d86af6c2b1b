// `cache.explain(key)`: what a call for a key would do now, and why.
import type { BreakerState, CircuitBreaker } from "../core/breaker.ts";
import { quotedName } from "../core/debug.ts";
import type { ResolvedLoadOptions } from "../core/entry-options.ts";
import { XCacheError } from "../core/errors.ts";
import { toError } from "../core/events.ts";
import type { Loader } from "../core/loading/loader.ts";
import type { Invalidation, Namespace, SightedEntry, Sighting } from "../core/namespace.ts";
import type { KeyExplanation } from "../core/stats.ts";

export interface ExplainedCache {
  readonly namespace: Namespace;
  readonly loader: Loader;
  readonly breaker: CircuitBreaker | undefined;
  /** When something was invalidated, in milliseconds since the epoch, as far as it is known. */
  invalidatedAt(what: Invalidation): Promise<number | undefined>;
}

/** Looks at once, before this returns; what is read of the store arrives later. */
export function explainKey(
  cache: ExplainedCache,
  key: string,
  request: ResolvedLoadOptions,
): Promise<KeyExplanation> {
  const breaker = cache.breaker?.state ?? "closed";
  // Another call is to be the probe that finds out whether the store works again.
  const looking: Promise<Sighting | Error> =
    breaker === "closed"
      ? looked(cache.namespace, key)
      : Promise.resolve(new Error(`the circuit breaker is ${breaker.replace("_", " ")}`));
  const callers = cache.loader.callersOf(key);
  return looking.then((seen) => explained(cache, key, request, { seen, callers, breaker }));
}

async function looked(namespace: Namespace, key: string): Promise<Sighting | Error> {
  try {
    return await namespace.sight(key);
  } catch (error) {
    return toError(error);
  }
}

interface Known {
  readonly seen: Sighting | Error;
  readonly callers: number | undefined;
  readonly breaker: BreakerState;
}

async function explained(
  cache: ExplainedCache,
  key: string,
  request: ResolvedLoadOptions,
  { seen, callers, breaker }: Known,
): Promise<KeyExplanation> {
  const loading = loadingBy(callers, seen);
  const base = { key, ...(loading && { loading }), circuitBreaker: breaker };
  const joins = request.lock && loading !== undefined && !request.force ? "join" : "load";
  if (seen instanceof Error) {
    const why = seen instanceof XCacheError ? `the store failed (${seen.code})` : seen.message;
    const reason = `${why}: get throws, getOrSet ${joins === "join" ? loadingText(loading) : "loads without storing"}`;
    return { ...base, get: "error", getOrSet: joins, state: "unknown", reason };
  }
  const { entry } = seen;
  const tail = joins === "join" ? `; ${loadingText(loading)}` : "";
  if (entry === undefined && seen.tier === undefined) {
    const reason = `nothing is stored: never set, deleted, expired or evicted${tail}`;
    return { ...base, get: "miss", getOrSet: joins, state: "absent", reason };
  }
  const { tags = [] } = entry ?? {};
  if (entry?.invalidatedBy !== undefined) {
    const invalidatedBy = await dated(cache, entry.invalidatedBy);
    const reason = `${invalidationText(invalidatedBy)}${tail}`;
    return { ...base, get: "miss", getOrSet: joins, state: "invalidated", tags, invalidatedBy, reason };
  }
  if (entry === undefined || entry.fresh) {
    const { tier = "store" } = seen;
    const ttl = entry && entry.ttlMs / 1_000;
    const known = { state: "fresh", tier, tags, ...(ttl !== undefined && { ttl }) } as const;
    const forced = request.force ? "; forceLoad loads even so" : "";
    const reason = `${freshText(ttl)} in ${TIERS[tier]}${forced}`;
    return { ...base, ...known, get: "hit", getOrSet: request.force ? "load" : "hit", reason };
  }
  return {
    ...base,
    ...expired(cache, key, request, entry, joins, tail),
    get: "miss",
    state: "expired",
    tags,
  };
}

function expired(
  { loader }: ExplainedCache,
  key: string,
  request: ResolvedLoadOptions,
  entry: SightedEntry,
  joins: "join" | "load",
  tail: string,
): Pick<KeyExplanation, "getOrSet" | "reason" | "expiredFor" | "staleFor"> {
  const { expiredForMs, staleMs } = entry;
  const times = { expiredFor: expiredForMs / 1_000, staleFor: staleMs / 1_000 };
  const isWithin = (windowMs: number): boolean => staleMs > 0 && windowMs > 0 && expiredForMs <= windowMs;
  const isRevalidated = isWithin(request.staleWhileRevalidateMs);
  const isKeptForErrors = isWithin(request.staleIfErrorMs);
  const ago = `expired ${text(times.expiredFor)} ago`;
  if (!request.force && (isRevalidated || isKeptForErrors) && loader.isPaused(key, entry))
    return { ...times, getOrSet: "stale", reason: `${ago}; served stale, since the last load has failed` };
  if (!request.force && isRevalidated)
    return { ...times, getOrSet: "stale", reason: `${ago}; served stale while it is loaded again` };
  const fallback = isKeptForErrors ? "; served stale if the load fails" : "";
  return { ...times, getOrSet: joins, reason: `${ago}${fallback}${tail}` };
}

function loadingBy(callers: number | undefined, seen: Sighting | Error): KeyExplanation["loading"] {
  if (callers !== undefined) return { by: "this process", callers };
  return !(seen instanceof Error) && seen.isLeased ? { by: "another process" } : undefined;
}

async function dated(
  cache: ExplainedCache,
  what: Invalidation,
): Promise<Required<KeyExplanation>["invalidatedBy"]> {
  const at = await cache.invalidatedAt(what).catch(() => undefined);
  return {
    tags: what.tags,
    cleared: what.isCleared,
    ...(at !== undefined && { at: new Date(at).toISOString() }),
  };
}

const TIERS = {
  memory: "the memory of this process",
  near: "the near tier of this process",
  store: "the store",
} as const;

function freshText(ttl: number | undefined): string {
  if (ttl === undefined) return "fresh";
  return ttl === Number.POSITIVE_INFINITY ? "fresh, and never expires," : `fresh for ${text(ttl)}`;
}

function invalidationText({ tags, cleared, at }: Required<KeyExplanation>["invalidatedBy"]): string {
  const names = tags.map(quotedName).join(", ");
  const byTags = tags.length === 1 ? `the tag ${names}` : `the tags ${names}`;
  const by = [...(tags.length > 0 ? [byTags] : []), ...(cleared ? ["a clear() of the namespace"] : [])];
  return `invalidated by ${by.join(" and ")}${at === undefined ? "" : ` at ${at}`}`;
}

function loadingText(loading: KeyExplanation["loading"]): string {
  if (loading?.callers === undefined) return "another process is loading it";
  if (loading.callers === 0) return "this process is loading it in the background";
  return `this process is loading it for ${loading.callers} ${loading.callers === 1 ? "caller" : "callers"}`;
}

const text = (seconds: number): string => `${Number(seconds.toFixed(seconds < 10 ? 3 : 0))} s`;
