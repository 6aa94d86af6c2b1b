// The framework-independent HTTP cache: decides whether a request may use the cache and starts its lookup, or passes it through.
import { type Clock, systemClock } from "../../core/clock.ts";
import { describeArrival } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import type { GetOrSetOptions } from "../../core/options.ts";
import { peekInto } from "../../core/sync-peek.ts";
import { CREDENTIAL_HEADERS, Credentials } from "../message/credential.ts";
import type { Exchange, RequestInfo } from "../message/exchange.ts";
import { type Forwarded, StatusField } from "../protocol/cache-status.ts";
import { hasPrecondition } from "../protocol/conditional.ts";
import { type PathTest, pathExclusion } from "../protocol/path-exclusion.ts";
import { builtKey, invalidatedTargets, isSafe, pathTag, urlKey } from "../protocol/url-key.ts";
import { type Decide, decisionSink } from "./decision.ts";
import { DONE, tryFastPath } from "./fast-path.ts";
import { HitForMiss } from "./hit-for-miss.ts";
import { Lookup } from "./lookup.ts";
import type { LookupHost } from "./lookup-state.ts";
import {
  type CheckedOptions,
  checkOptions,
  type HttpCacheOptions,
  isPromise,
  requireSync,
} from "./options.ts";
import { PassThrough } from "./pass-through.ts";
import { ReadyResponses } from "./ready-response.ts";
import { RequestDirectives } from "./request-directives.ts";
import { type RequestTarget, RequestTargets } from "./request-target.ts";

/** Seconds an expired response is kept at least, so that its handler can revalidate it. */
const MIN_STALE_RETENTION = 60;

/** Totals since the cache was created. */
export interface HttpCacheCounts {
  readonly hits: number;
  readonly misses: number;
  readonly bypasses: number;
  readonly stores: number;
  readonly errors: number;
}

/** The HTTP cache behind every adapter. `Request` is the framework's request type. */
export class HTTPCacheMiddleware<Request = unknown> {
  readonly #options: CheckedOptions<Request>;
  readonly #clock: Clock;
  readonly #statusField: StatusField;
  readonly #isExcluded: PathTest | undefined;
  readonly #credentials: Credentials;
  /** Whether a plain request has none of the configured credentials. */
  readonly #trustsPlain: boolean;
  readonly #host: LookupHost<Request>;
  readonly #decide: Decide<Request> | undefined;
  readonly #targets = new RequestTargets();
  readonly #counts = { hits: 0, misses: 0, bypasses: 0, stores: 0, errors: 0 };

  /** Throws ConfigError for invalid options. `clock` is for tests. */
  constructor(options: HttpCacheOptions<Request>, clock: Clock = systemClock) {
    this.#options = checkOptions(options);
    this.#clock = clock;
    this.#statusField = new StatusField(this.#options.statusHeader, this.#options.cacheStatus);
    this.#isExcluded = pathExclusion(this.#options.excludePaths);
    const { staleWhileRevalidate, staleIfError, credentialHeaders } = this.#options;
    this.#credentials = new Credentials(credentialHeaders);
    this.#trustsPlain = credentialHeaders.every((name) => CREDENTIAL_HEADERS.includes(name));
    this.#decide = decisionSink(this.#options.onDecision, (error) => this.#reportError(error));
    const staleRetention = { seconds: Math.max(MIN_STALE_RETENTION, staleWhileRevalidate, staleIfError) };
    this.#host = {
      options: this.#options,
      statusField: this.#statusField,
      readyResponses: new ReadyResponses(this.#statusField),
      hitForMiss: new HitForMiss(clock),
      keyedFields: new Set(this.#options.varyBy),
      loadOptions: loadOptionsFor(staleRetention),
      syncPeek: peekInto(this.#options.cache),
      now: () => this.#now(),
      coarseNow: () => clock.coarseWall?.() ?? this.#now(),
      after: (delayMs, run) => clock.after(delayMs, run),
      token: () => Buffer.from(clock.token(), "latin1").toString("base64url"),
      staleRetention,
      emit: (event, key, exchange, reason) => this.#emit(event, key, exchange, reason),
      notStored: (reason, key, exchange) => this.#decide?.("not-stored", reason, exchange, key),
      reportError: (error) => this.#reportError(error),
      pass: (exchange, forwarded) => this.#pass(exchange, forwarded),
    };
  }

  get counts(): HttpCacheCounts {
    return { ...this.#counts };
  }

  /** Answers the request from the cache or through its handler. Rejects if the handler does. */
  handle(exchange: Exchange<Request>): Promise<void> {
    const { request } = exchange;
    const { methods } = this.#options;
    if (!methods.has(request.method)) return this.#passOther(exchange);
    const directives = RequestDirectives.of(request, this.#options.clientDirectives);
    const detail = this.#bypassReason(exchange, directives) ?? exchange.bypass;
    if (detail !== undefined) return this.#bypass(exchange, detail);
    if (this.#hasBuiltKeys) return this.#buildKey(exchange, directives);
    return this.#lookUp(exchange, directives, this.#targets.of(request));
  }

  #lookUp(
    exchange: Exchange<Request>,
    directives: RequestDirectives,
    target: RequestTarget,
    extra = this.#options.cacheControlExtra,
  ): Promise<void> {
    try {
      if (tryFastPath(this.#host, exchange, directives, target)) return DONE;
    } catch (error) {
      return Promise.reject(error);
    }
    const tags = this.#tagsOf(exchange.request);
    return new Lookup(this.#host, exchange, directives, target.key, tags, extra).run();
  }

  /** An unsafe request knows only the URL, not what else is in the keys of its entries: a tag invalidates them all. */
  #tagsOf(request: RequestInfo): readonly string[] {
    const { tags } = this.#options;
    if (this.#hasBuiltKeys) return [...tags, pathTag(request, request.target)];
    return request.selectors === "" ? tags : [...tags, urlKey(request, request.target)];
  }

  get #hasBuiltKeys(): boolean {
    return this.#options.keyBuilder !== undefined || this.#options.user !== undefined;
  }

  /** The `detail` for Cache-Status, or undefined if the request may use the cache. */
  #bypassReason({ request, native }: Exchange<Request>, directives: RequestDirectives): string | undefined {
    const { skip } = this.#options;
    const isPlain = request.isPlain && this.#trustsPlain;
    const reason = isPlain ? undefined : this.#fieldBypassReason(request, directives);
    if (reason !== undefined) return reason;
    if (this.#isExcluded?.(request.target)) return "excluded";
    if (skip === undefined) return undefined;
    try {
      return requireSync("skip", skip(native)) ? "skip" : undefined;
    } catch (error) {
      this.#reportError(error);
      return "skip";
    }
  }

  /** The request field that rules out the cache, if there is one. */
  #fieldBypassReason(request: RequestInfo, directives: RequestDirectives): string | undefined {
    const { shared, user } = this.#options;
    if (!shared) {
      const credential = user === undefined ? this.#credentials.of(request) : undefined;
      if (credential !== undefined) return credential;
      // Content is not part of the key, yet the handler may read it (RFC 9110, 9.3.1). The key builder that other methods
      // require covers it.
      if (URL_KEYED.includes(request.method) && request.hasContent) return "content";
    }
    // Neither the request nor its response may be stored (RFC 9111, 5.2.1.5).
    if (directives.noStore) return "no-store";
    if (hasPrecondition(request)) return "precondition";
    return request.header("upgrade") === undefined ? undefined : "upgrade";
  }

  async #buildKey(exchange: Exchange<Request>, directives: RequestDirectives): Promise<void> {
    const { request, native } = exchange;
    const { keyBuilder, user: userOf, shared } = this.#options;
    let built: string | undefined;
    let user: string | undefined;
    try {
      // An empty key would be shared by all requests, and an empty name by all users.
      if (keyBuilder !== undefined) built = requireText("keyBuilder", await keyBuilder(native));
      user = await userOf?.(native);
      if (user !== undefined) requireText("user", user);
    } catch (error) {
      this.#reportError(error);
      return this.#bypass(exchange, "key");
    }
    const credential = user === undefined && !shared ? this.#credentials.of(request) : undefined;
    if (credential !== undefined) return this.#bypass(exchange, credential);
    const target = { key: builtKey(request, built, user), ready: undefined };
    return this.#lookUp(exchange, directives, target, this.#controlFor(user));
  }

  /** What follows an added max-age: the page of one user is not for other caches. */
  #controlFor(user: string | undefined): string | undefined {
    const { cacheControlExtra: extra } = this.#options;
    if (user === undefined || extra?.includes("private")) return extra;
    return extra === undefined ? "private" : `private, ${extra}`;
  }

  #bypass(exchange: Exchange<Request>, detail: string): Promise<void> {
    this.#counts.bypasses++;
    return this.#pass(exchange, { reason: "bypass", detail });
  }

  async #pass(exchange: Exchange<Request>, forwarded: Forwarded): Promise<void> {
    const { reason, detail } = forwarded;
    if (reason === "bypass" || reason === "method") this.#decide?.("bypassed", detail ?? reason, exchange);
    await exchange.forward(undefined, new PassThrough(this.#statusField, forwarded));
  }

  async #passOther(exchange: Exchange<Request>): Promise<void> {
    const { request } = exchange;
    this.#counts.bypasses++;
    const forwarded: Forwarded = { reason: "method" };
    if (isSafe(request.method)) return this.#pass(exchange, forwarded);
    this.#decide?.("bypassed", "method", exchange);
    const tap = new PassThrough(this.#statusField, forwarded, (response) => {
      const targets = invalidatedTargets(request, response);
      return targets.length === 0 ? undefined : this.#invalidate(request, targets);
    });
    await exchange.forward(undefined, tap);
  }

  async #invalidate(request: RequestInfo, targets: readonly string[]): Promise<void> {
    const { cache } = this.#options;
    try {
      if (this.#hasBuiltKeys) await cache.invalidateTags(targets.map((target) => pathTag(request, target)));
      else {
        const keys = targets.map((target) => urlKey(request, target));
        await Promise.all([cache.delete(keys), cache.invalidateTags(keys)]);
      }
    } catch (error) {
      this.#reportError(error);
    }
  }

  #emit(event: "hit" | "miss" | "store", key: string, exchange: Exchange<Request>, reason: string): void {
    const { onHit, onMiss, onStore } = this.#options;
    this.#decide?.(event === "store" ? "stored" : event, reason, exchange, key);
    if (event === "hit") this.#counts.hits++;
    else if (event === "miss") this.#counts.misses++;
    else this.#counts.stores++;
    const listener = event === "hit" ? onHit : event === "miss" ? onMiss : onStore;
    if (listener === undefined) return;
    try {
      const returned: unknown = listener({ key, request: exchange.native });
      if (isPromise(returned)) returned.then(undefined, (error: unknown) => this.#reportError(error));
    } catch (error) {
      this.#reportError(error);
    }
  }

  #reportError(thrown: unknown): void {
    this.#counts.errors++;
    // An error thrown by onError itself has nowhere to go.
    try {
      const returned: unknown = this.#options.onError?.(toError(thrown));
      if (isPromise(returned)) returned.then(undefined, () => {});
    } catch {}
  }

  #now(): number {
    return this.#clock.wall?.() ?? this.#clock.now();
  }
}

/** Methods whose requests are identified by their URL. */
const URL_KEYED: readonly string[] = ["GET", "HEAD"];

function requireText(callback: string, returned: unknown): string {
  if (typeof returned === "string" && returned !== "") return returned;
  throw new TypeError(`${callback} must return a non-empty string, got ${describeArrival(returned)}`);
}

/** Never takes effect: every load sets its own ttl. */
const PLACEHOLDER_TTL = 60;

/** Reuses one options object: most requests need the same one. */
function loadOptionsFor(staleRetention: { readonly seconds: number }): LookupHost<unknown>["loadOptions"] {
  let cachedOptions: GetOrSetOptions = {};
  let cachedSeconds = -1;
  return (tags, mayServeStale, isForced) => {
    const { seconds } = staleRetention;
    if (mayServeStale && !isForced && seconds === cachedSeconds && tags === cachedOptions.tags)
      return cachedOptions;
    const options: GetOrSetOptions = {
      ttl: PLACEHOLDER_TTL,
      tags,
      staleIfError: seconds,
      staleWhileRevalidate: mayServeStale ? seconds : 0,
      forceLoad: isForced,
    };
    if (mayServeStale && !isForced) {
      cachedOptions = options;
      cachedSeconds = seconds;
    }
    return options;
  };
}
