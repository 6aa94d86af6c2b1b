// What the HTTP cache can be told, and the check that it was told something sensible.
import { requireFlag, requireOptions } from "../../core/arguments.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { requireTags } from "../../core/keys.ts";
import type { GetOrSetOptions, Load, SetOptions } from "../../core/options.ts";

/** What the HTTP cache needs of a cache; an XCache is one. */
export interface CacheForHttp {
  get<T = unknown>(key: string): Promise<T | undefined>;
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  set(key: string, value: unknown, options?: SetOptions): Promise<void>;
  delete(keys: string | readonly string[]): Promise<number>;
  invalidateTags(tags: string | readonly string[]): Promise<void>;
}

/** The head of a response, as callbacks see it. */
export interface ResponseView {
  readonly status: number;
  /** A field, its lines joined; undefined when absent. */
  header(name: string): string | undefined;
}

/** What is told of one request. */
export interface HttpCacheEvent<Request = unknown> {
  readonly key: string;
  readonly request: Request;
}

/** `Request` is the framework's own. */
export interface HttpCacheOptions<Request = unknown> {
  readonly cache: CacheForHttp;
  /** Seconds for responses that say nothing of their lifetime; 0: store only what the handler marked cacheable. Default: 60. */
  readonly ttl?: number | ((request: Request, response: ResponseView) => number);
  /**
   * Builds the key. With one of its own an application also takes charge of requests with Authorization or Cookie: the key
   * must then tell principals apart. Default: the full URL, and such requests are not cached.
   */
  readonly keyBuilder?: (request: Request) => string | Promise<string>;
  /** Methods that are cached. Others than GET and HEAD need a keyBuilder. Default: GET and HEAD. */
  readonly methods?: readonly string[];
  /** Prefixes of paths that are not cached; whatever the case and the encoding. Default: none. */
  readonly excludePaths?: readonly string[];
  /** Whether other statuses than 200 are cached. Default: false. */
  readonly cacheNonOk?: boolean;
  /** Labels for invalidateTags. Default: none. `Surrogate-Key` and `Cache-Tag` of the response are labels as well. */
  readonly tags?: readonly string[] | ((request: Request, response: ResponseView) => readonly string[]);
  /** What goes into the Cache-Control that is added, after `max-age`, such as `public`. Default: nothing. */
  readonly cacheControlExtra?: string;
  /** Bytes; a longer body passes through and is not stored. Default: 5 MB. */
  readonly maxBodyBytes?: number;
  /** Seconds after expiry during which the old response answers while one call refreshes it. Default: 0. */
  readonly staleWhileRevalidate?: number;
  /** Seconds after expiry during which the old response answers in place of an error. Default: 0. */
  readonly staleIfError?: number;
  /** Request fields that select a response; added to its Vary. Default: none. */
  readonly varyBy?: readonly string[];
  /** Show a handler that fills the cache only those request fields that are part of the key. Default: false. */
  readonly strict?: boolean;
  /** Obey no-cache, max-age, min-fresh and max-stale of requests: then any client can cause load. Default: false. */
  readonly clientDirectives?: boolean;
  /** How the ETag of a response without one compares. Default: weak. */
  readonly etag?: "weak" | "strong";
  /** The field that says what the cache did; false: none. Default: Cache-Status. */
  readonly statusHeader?: "Cache-Status" | "X-Cache" | false;
  /** What this cache calls itself in Cache-Status. Default: xcache. */
  readonly cacheStatus?: string;
  /** Whether to leave a request alone. Default: never. */
  readonly skip?: (request: Request) => boolean;
  /** Whether a response that may be stored is to be. Default: always. */
  readonly shouldStore?: (request: Request, response: ResponseView) => boolean;
  readonly onHit?: (event: HttpCacheEvent<Request>) => void;
  readonly onMiss?: (event: HttpCacheEvent<Request>) => void;
  readonly onStore?: (event: HttpCacheEvent<Request>) => void;
  /** Told of what failed and was passed over: a key builder, a callback, the store. Default: nobody. */
  readonly onError?: (error: Error) => void;
}

const NAMES: readonly (keyof HttpCacheOptions)[] = [
  "cache",
  "ttl",
  "keyBuilder",
  "methods",
  "excludePaths",
  "cacheNonOk",
  "tags",
  "cacheControlExtra",
  "maxBodyBytes",
  "staleWhileRevalidate",
  "staleIfError",
  "varyBy",
  "strict",
  "clientDirectives",
  "etag",
  "statusHeader",
  "cacheStatus",
  "skip",
  "shouldStore",
  "onHit",
  "onMiss",
  "onStore",
  "onError",
];

const CALLBACKS = ["keyBuilder", "skip", "shouldStore", "onHit", "onMiss", "onStore", "onError"] as const;
const CACHE_METHODS = ["get", "getOrSet", "set", "delete", "invalidateTags"] as const;
const DEFAULT_BODY_BYTES = 5 * 1024 * 1024;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_TEXT = /^[\t\x20-\x7e]+$/;

/** The options with their defaults, and the tags and methods as the engine needs them. */
export interface CheckedOptions<Request> extends Omit<HttpCacheOptions<Request>, "tags" | "methods"> {
  readonly ttl: number | ((request: Request, response: ResponseView) => number);
  readonly methods: ReadonlySet<string>;
  readonly excludePaths: readonly string[];
  readonly cacheNonOk: boolean;
  readonly tags: readonly string[];
  readonly tagsOf: ((request: Request, response: ResponseView) => readonly string[]) | undefined;
  readonly maxBodyBytes: number;
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  readonly varyBy: readonly string[];
  readonly strict: boolean;
  readonly clientDirectives: boolean;
  readonly etag: "weak" | "strong";
  readonly statusHeader: "Cache-Status" | "X-Cache" | false;
  readonly cacheStatus: string;
}

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD, InvalidKeyError for a tag that cannot be one. */
export function checkOptions<Request>(given: HttpCacheOptions<Request>): CheckedOptions<Request> {
  requireOptions(given, NAMES);
  const { cache, ttl = 60, tags = [], cacheControlExtra, excludePaths = [], varyBy = [] } = given;
  const { etag = "weak", statusHeader = "Cache-Status", cacheStatus = "xcache" } = given;
  const isCache =
    typeof cache === "object" &&
    cache !== null &&
    CACHE_METHODS.every((method) => typeof cache[method] === "function");
  expectThat(isCache, "cache", "an XCache", cache);
  expectThat(
    typeof ttl === "function" || isSeconds(ttl),
    "ttl",
    "a number of seconds of at least 0, or a function",
    ttl,
  );
  for (const name of CALLBACKS) {
    expectThat(
      given[name] === undefined || typeof given[name] === "function",
      name,
      "a function",
      given[name],
    );
  }
  expectThat(
    isTexts(excludePaths),
    "excludePaths",
    "a list of path prefixes that are not empty",
    excludePaths,
  );
  expectThat(
    cacheControlExtra === undefined ||
      (typeof cacheControlExtra === "string" && FIELD_TEXT.test(cacheControlExtra)),
    "cacheControlExtra",
    "a Cache-Control directive",
    cacheControlExtra,
  );
  expectThat(
    isTexts(varyBy) && varyBy.every((name) => TOKEN.test(name)),
    "varyBy",
    "a list of field names",
    varyBy,
  );
  expectThat(etag === "weak" || etag === "strong", "etag", '"weak" or "strong"', etag);
  const isField = statusHeader === false || statusHeader === "Cache-Status" || statusHeader === "X-Cache";
  expectThat(isField, "statusHeader", '"Cache-Status", "X-Cache" or false', statusHeader);
  expectThat(
    typeof cacheStatus === "string" && TOKEN.test(cacheStatus),
    "cacheStatus",
    "a name",
    cacheStatus,
  );
  return {
    ...given,
    ttl,
    methods: requireMethods(given),
    excludePaths,
    cacheNonOk: requireFlag(given.cacheNonOk, "cacheNonOk", false),
    tags: typeof tags === "function" ? [] : requireTags(tags),
    tagsOf: typeof tags === "function" ? tags : undefined,
    maxBodyBytes: requireAmount("maxBodyBytes", given.maxBodyBytes, DEFAULT_BODY_BYTES),
    staleWhileRevalidate: requireAmount("staleWhileRevalidate", given.staleWhileRevalidate, 0),
    staleIfError: requireAmount("staleIfError", given.staleIfError, 0),
    varyBy: varyBy.map((name) => name.toLowerCase()),
    strict: requireFlag(given.strict, "strict", false),
    clientDirectives: requireFlag(given.clientDirectives, "clientDirectives", false),
    etag,
    statusHeader,
    cacheStatus,
  };
}

const URL_KEYED = ["GET", "HEAD"];

function requireMethods(given: HttpCacheOptions<never>): ReadonlySet<string> {
  const { methods = URL_KEYED, keyBuilder } = given;
  const isList = isTexts(methods) && methods.every((method) => TOKEN.test(method));
  expectThat(isList, "methods", "a list of HTTP methods", methods);
  const names = methods.map((method) => method.toUpperCase());
  const other = names.find((name) => !URL_KEYED.includes(name));
  if (other === undefined || keyBuilder !== undefined) return new Set(names);
  throw new ConfigError(
    "ARGUMENT_INVALID",
    `httpCache(): methods may name ${other} only with a keyBuilder; what such a request sends is not in its URL.`,
    { hint: `Pass a keyBuilder that tells apart what differs, or take ${other} out of methods.` },
  );
}

function requireAmount(field: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  expectThat(isSeconds(value), field, "a number of at least 0", value);
  return value;
}

function isSeconds(value: unknown): boolean {
  return typeof value === "number" && value >= 0;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string" && item !== "");
}

function expectThat(holds: boolean, field: string, expected: string, arrived: unknown): void {
  if (holds) return;
  const message = `httpCache(): ${field} must be ${expected}; got ${describeArrival(arrived)}.`;
  throw new ConfigError("ARGUMENT_INVALID", message);
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** What the callback said. Throws TypeError for a promise: nobody waits for it, and it would count for a yes. */
export function requireAnswer<T>(name: string, answer: T): T {
  if (!isPromise(answer)) return answer;
  answer.then(undefined, () => {});
  throw new TypeError(`${name} must return true or false at once, got a promise: it may not be async`);
}
