// The HTTP cache without any framework: decides what happens to a request and hands it to a visit, or lets it pass.
import { type Clock, systemClock } from "../../core/clock.ts";
import { describeArrival } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import type { GetOrSetOptions } from "../../core/options.ts";
import { peekInto } from "../../core/sync-peek.ts";
import type { Exchange, RequestFacts } from "../message/exchange.ts";
import { type Forwarded, StatusField } from "../protocol/cache-status.ts";
import { hasPrecondition } from "../protocol/conditional.ts";
import { type PathTest, pathExclusion } from "../protocol/path-exclusion.ts";
import { builtKey, invalidatedKeys, isSafe, requestKey } from "../protocol/url-key.ts";
import { DONE, tryFastPath } from "./fast-path.ts";
import { HitForMiss } from "./hit-for-miss.ts";
import { Lookup } from "./lookup.ts";
import type { LookupHost } from "./lookup-state.ts";
import {
  type CheckedOptions,
  checkOptions,
  type HttpCacheOptions,
  isPromise,
  requireAnswer,
} from "./options.ts";
import { PassThrough } from "./pass-through.ts";
import { ReadyResponses } from "./ready-response.ts";
import { RequestDirectives } from "./request-directives.ts";
import { type RequestTarget, RequestTargets } from "./request-target.ts";

/** Seconds for which an expired response is kept, to be found still good by its handler. */
const LEAST_KEPT = 60;

/** What the cache did since it was made. */
export interface HttpCacheCounts {
  readonly hits: number;
  readonly misses: number;
  readonly bypasses: number;
  readonly stores: number;
  readonly errors: number;
}

/** The HTTP cache behind every adapter. `Request` is the framework's own. */
export class HTTPCacheMiddleware<Request = unknown> {
  readonly #options: CheckedOptions<Request>;
  readonly #clock: Clock;
  readonly #statusField: StatusField;
  readonly #isExcluded: PathTest | undefined;
  readonly #host: LookupHost<Request>;
  readonly #addresses = new RequestTargets();
  readonly #counts = { hits: 0, misses: 0, bypasses: 0, stores: 0, errors: 0 };

  /** Throws ConfigError for options that cannot be. `clock`: for tests. */
  constructor(options: HttpCacheOptions<Request>, clock: Clock = systemClock) {
    this.#options = checkOptions(options);
    this.#clock = clock;
    this.#statusField = new StatusField(this.#options.statusHeader, this.#options.cacheStatus);
    this.#isExcluded = pathExclusion(this.#options.excludePaths);
    const { staleWhileRevalidate, staleIfError } = this.#options;
    const keep = { seconds: Math.max(LEAST_KEPT, staleWhileRevalidate, staleIfError) };
    this.#host = {
      options: this.#options,
      statusField: this.#statusField,
      prepared: new ReadyResponses(this.#statusField),
      unstorable: new HitForMiss(clock),
      keyed: new Set(this.#options.varyBy),
      loadTerms: loadTermsFor(keep),
      look: peekInto(this.#options.cache),
      now: () => this.#now(),
      coarseNow: () => clock.coarseWall?.() ?? this.#now(),
      after: (delayMs, run) => clock.after(delayMs, run),
      token: () => Buffer.from(clock.token(), "latin1").toString("base64url"),
      keep,
      told: (event, key, request) => this.#told(event, key, request),
      failed: (error) => this.#failed(error),
      pass: (exchange, forwarded) => this.#pass(exchange, forwarded),
    };
  }

  get counts(): HttpCacheCounts {
    return { ...this.#counts };
  }

  /** Answers the request, from the cache or by its handler. Rejects when the handler does. */
  handle(exchange: Exchange<Request>): Promise<void> {
    const { request } = exchange;
    const { methods, keyBuilder } = this.#options;
    if (!methods.has(request.method)) return this.#passOther(exchange);
    const directives = RequestDirectives.of(request, this.#options.clientDirectives);
    const detail = this.#whyBypass(exchange, directives);
    if (detail !== undefined) return this.#bypass(exchange, detail);
    if (keyBuilder === undefined) {
      return this.#visit(exchange, directives, this.#addresses.of(request), this.#options.tags);
    }
    return this.#buildKey(exchange, directives, keyBuilder);
  }

  #visit(
    exchange: Exchange<Request>,
    directives: RequestDirectives,
    address: RequestTarget,
    tags: readonly string[],
  ): Promise<void> {
    try {
      if (tryFastPath(this.#host, exchange, directives, address)) return DONE;
    } catch (error) {
      return Promise.reject(error);
    }
    return new Lookup(this.#host, exchange, directives, address.key, tags).run();
  }

  /** A word for Cache-Status; undefined: the request may use the cache. */
  #whyBypass({ request, native }: Exchange<Request>, directives: RequestDirectives): string | undefined {
    const { skip } = this.#options;
    const heeded = request.isPlain ? undefined : this.#heededIn(request, directives);
    if (heeded !== undefined) return heeded;
    if (this.#isExcluded?.(request.target)) return "excluded";
    if (skip === undefined) return undefined;
    try {
      return requireAnswer("skip", skip(native)) ? "skip" : undefined;
    } catch (error) {
      this.#failed(error);
      return "skip";
    }
  }

  /** The field by which the request asks to be left alone. */
  #heededIn(request: RequestFacts, directives: RequestDirectives): string | undefined {
    if (this.#options.keyBuilder === undefined) {
      if (request.header("authorization") !== undefined) return "authorization";
      if (request.header("cookie") !== undefined) return "cookie";
      // It is not in the key, and the handler may read it (RFC 9110, 9.3.1).
      if (request.hasContent) return "content";
    }
    // Nothing of this exchange may be stored (RFC 9111, 5.2.1.5).
    if (directives.noStore) return "no-store";
    if (hasPrecondition(request)) return "precondition";
    return request.header("upgrade") === undefined ? undefined : "upgrade";
  }

  async #buildKey(
    exchange: Exchange<Request>,
    directives: RequestDirectives,
    keyBuilder: (request: Request) => string | Promise<string>,
  ): Promise<void> {
    const { request, native } = exchange;
    let built: unknown;
    try {
      built = await keyBuilder(native);
      // An empty one would be everybody's.
      if (typeof built !== "string" || built === "") {
        throw new TypeError(
          `keyBuilder must return a string that is not empty, got ${describeArrival(built)}`,
        );
      }
    } catch (error) {
      this.#failed(error);
      return this.#bypass(exchange, "key");
    }
    const address = { key: builtKey(request.method, built), prepared: undefined };
    // Whoever changes the URL does not know under which keys it is stored; a tag does.
    const tags = [...this.#options.tags, requestKey(request)];
    return this.#visit(exchange, directives, address, tags);
  }

  #bypass(exchange: Exchange<Request>, detail: string): Promise<void> {
    this.#counts.bypasses++;
    return this.#pass(exchange, { reason: "bypass", detail });
  }

  async #pass(exchange: Exchange<Request>, forwarded: Forwarded): Promise<void> {
    await exchange.forward(undefined, new PassThrough(this.#statusField, forwarded));
  }

  async #passOther(exchange: Exchange<Request>): Promise<void> {
    const { request } = exchange;
    this.#counts.bypasses++;
    const forwarded: Forwarded = { reason: "method" };
    if (isSafe(request.method)) return this.#pass(exchange, forwarded);
    const tap = new PassThrough(this.#statusField, forwarded, (response) => {
      const keys = invalidatedKeys(request, response);
      return keys.length === 0 ? undefined : this.#invalidate(keys);
    });
    await exchange.forward(undefined, tap);
  }

  async #invalidate(keys: readonly string[]): Promise<void> {
    const { cache, keyBuilder } = this.#options;
    try {
      if (keyBuilder === undefined) await cache.delete(keys);
      else await cache.invalidateTags(keys);
    } catch (error) {
      this.#failed(error);
    }
  }

  #told(event: "hit" | "miss" | "store", key: string, request: Request): void {
    const { onHit, onMiss, onStore } = this.#options;
    if (event === "hit") this.#counts.hits++;
    else if (event === "miss") this.#counts.misses++;
    else this.#counts.stores++;
    const listener = event === "hit" ? onHit : event === "miss" ? onMiss : onStore;
    if (listener === undefined) return;
    try {
      const told: unknown = listener({ key, request });
      if (isPromise(told)) told.then(undefined, (error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(thrown: unknown): void {
    this.#counts.errors++;
    // There is nobody left to tell of an error in here.
    try {
      const told: unknown = this.#options.onError?.(toError(thrown));
      if (isPromise(told)) told.then(undefined, () => {});
    } catch {}
  }

  #now(): number {
    return this.#clock.wall?.() ?? this.#clock.now();
  }
}

/** Every load decides on its lifetime itself. */
const USUAL_TTL = 60;

/** The usual terms are the same for request after request, so they are made once. */
function loadTermsFor(keep: { readonly seconds: number }): LookupHost<unknown>["loadTerms"] {
  let usual: GetOrSetOptions = {};
  let usualSeconds = -1;
  return (tags, mayServeStale, isForced) => {
    const { seconds } = keep;
    if (mayServeStale && !isForced && seconds === usualSeconds && tags === usual.tags) return usual;
    const terms: GetOrSetOptions = {
      ttl: USUAL_TTL,
      tags,
      staleIfError: seconds,
      staleWhileRevalidate: mayServeStale ? seconds : 0,
      forceLoad: isForced,
    };
    if (mayServeStale && !isForced) {
      usual = terms;
      usualSeconds = seconds;
    }
    return terms;
  };
}
