// The options of the HTTP cache and their validation.
import { requireFlag, requireOptions } from "../../core/arguments.ts";
import { type Duration, HOUR_MS, OR_TEXT, toSeconds, warnOfMilliseconds } from "../../core/duration.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { requireTags } from "../../core/keys.ts";
import type { GetOrSetOptions, Load, SetOptions, Tags } from "../../core/options.ts";
import { CREDENTIAL_HEADERS } from "../message/credential.ts";

/** The operations the HTTP cache needs; an XCache has them. */
export interface CacheForHttp {
  get<T = unknown>(key: string): Promise<T | undefined>;
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  set(key: string, value: unknown, options?: SetOptions): Promise<void>;
  delete(keys: string | readonly string[]): Promise<number>;
  invalidateTags(tags: string | readonly string[]): Promise<void>;
}

/** A response's status and header fields, as passed to callbacks. */
export interface ResponseView {
  readonly status: number;
  /** The field's lines joined by a comma, or undefined if absent. */
  header(name: string): string | undefined;
}

/** The event passed to `onHit`, `onMiss` and `onStore`. */
export interface HttpCacheEvent<Request = unknown> {
  readonly key: string;
  readonly request: Request;
}

/** What the cache decided about a request or its response, passed to `onDecision`. */
export interface HttpCacheDecision<Request = unknown> {
  /**
   * `bypassed`: the request does not use the cache. `hit`: answered from the cache. `miss`: the handler is called. Then
   * `stored` or `not-stored`: what became of its response.
   */
  readonly outcome: "bypassed" | "hit" | "miss" | "stored" | "not-stored";
  /** One word, such as `set-cookie`, or the name of the request field that identifies a user. Never a value of a field. */
  readonly reason: string;
  /** Undefined if the request was bypassed before it had one. */
  readonly key: string | undefined;
  readonly request: Request;
}

/** `Request` is the framework's request type. */
export interface HttpCacheOptions<Request = unknown> {
  readonly cache: CacheForHttp;
  /**
   * For responses that state no lifetime: seconds or a text such as "5m"; 0 stores only what the handler marked cacheable.
   * Default: 60 seconds.
   */
  readonly ttl?: Duration | ((request: Request, response: ResponseView) => Duration);
  /** Builds the part of the key after the origin. Default: path and query. */
  readonly keyBuilder?: (request: Request) => string | Promise<string>;
  /**
   * Names the user of a request, who becomes part of the key; undefined: nobody in particular. Requests with credentials are
   * then cached for the user they belong to. Default: they are not cached.
   */
  readonly user?: (request: Request) => string | undefined | Promise<string | undefined>;
  /** Whether to cache requests with credentials or a body for all users alike: the key says everything. Default: false. */
  readonly shared?: boolean;
  /**
   * Request fields that are credentials, in addition to Authorization and Cookie; a `*` at the end stands for any rest of a
   * name. Default: those of API keys and authenticating proxies.
   */
  readonly credentialHeaders?: readonly string[];
  /** Methods to cache. Methods other than GET and HEAD require a keyBuilder. Default: GET and HEAD. */
  readonly methods?: readonly string[];
  /** Path prefixes that are not cached, regardless of case and encoding. Default: none. */
  readonly excludePaths?: readonly string[];
  /** Whether to cache statuses other than 200. Default: false. */
  readonly cacheNonOk?: boolean;
  /** Tags for invalidateTags, in addition to the response's `Surrogate-Key` and `Cache-Tag`. Default: none. */
  readonly tags?: Tags | ((request: Request, response: ResponseView) => Tags);
  /** Appended to an added Cache-Control after `max-age`, such as `public`. Default: nothing. */
  readonly cacheControlExtra?: string;
  /** Bytes; a larger body is passed through and not stored. Default: 5 MiB. */
  readonly maxBodyBytes?: number;
  /** How long after expiry the stale response is served while one call refreshes it. Default: 0. */
  readonly staleWhileRevalidate?: Duration;
  /** How long after expiry the stale response is served instead of an error. Default: 0. */
  readonly staleIfError?: Duration;
  /**
   * How long requests wait for another one that fills their key; then they go to the handler themselves, and the
   * response is not stored. Default: 30 seconds.
   */
  readonly fillTimeout?: Duration;
  /** How long after its head a response that has not ended counts as a stream, which is not stored. Default: 1 second. */
  readonly streamAfter?: Duration;
  /** Request fields that select a response; added to its Vary field. Default: none. */
  readonly varyBy?: readonly string[];
  /**
   * Whether `Vary: Cookie` goes with an added Cache-Control, so that a browser asks again after a login. Has no effect if
   * requests with cookies are cached. Default: true.
   */
  readonly varyCookie?: boolean;
  /** Whether a handler that fills the cache sees only the request fields that are part of the key. Default: false. */
  readonly strict?: boolean;
  /** Whether to obey no-cache, max-age, min-fresh and max-stale of requests. Lets any client cause load. Default: false. */
  readonly clientDirectives?: boolean;
  /** The kind of ETag added to responses without one. Default: weak. */
  readonly etag?: "weak" | "strong";
  /** The response field that reports what the cache did; false for none. Default: Cache-Status. */
  readonly statusHeader?: "Cache-Status" | "X-Cache" | false;
  /** This cache's name in Cache-Status. Default: xcache. */
  readonly cacheStatus?: string;
  /** Returns true for requests that must bypass the cache. Default: none. */
  readonly skip?: (request: Request) => boolean;
  /** Returns false for storable responses that must not be stored. Default: none. */
  readonly shouldStore?: (request: Request, response: ResponseView) => boolean;
  /** Called for every request answered from the cache. */
  readonly onHit?: (event: HttpCacheEvent<Request>) => void;
  /** Called for every request not answered from the cache. */
  readonly onMiss?: (event: HttpCacheEvent<Request>) => void;
  /** Called for every stored response. */
  readonly onStore?: (event: HttpCacheEvent<Request>) => void;
  /** Called for every decision, with its reason. `DEBUG=xcache:http` prints them. */
  readonly onDecision?: (decision: HttpCacheDecision<Request>) => void;
  /** Called with errors that the cache recovered from: of the key builder, a callback or the store. */
  readonly onError?: (error: Error) => void;
}

const CALLBACKS = [
  "keyBuilder",
  "user",
  "skip",
  "shouldStore",
  "onHit",
  "onMiss",
  "onStore",
  "onDecision",
  "onError",
] as const;
const NAMES: readonly (keyof HttpCacheOptions)[] = [
  "cache",
  "ttl",
  "shared",
  "credentialHeaders",
  "methods",
  "excludePaths",
  "cacheNonOk",
  "tags",
  "cacheControlExtra",
  "maxBodyBytes",
  "staleWhileRevalidate",
  "staleIfError",
  "fillTimeout",
  "streamAfter",
  "varyBy",
  "varyCookie",
  "strict",
  "clientDirectives",
  "etag",
  "statusHeader",
  "cacheStatus",
  ...CALLBACKS,
];
const CACHE_METHODS = ["get", "getOrSet", "set", "delete", "invalidateTags"] as const;
const DEFAULT_BODY_BYTES = 5 * 1024 * 1024;
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FIELD_TEXT = /^[\t\x20-\x7e]+$/;

/** The options with defaults applied, in the form the engine uses. */
export interface CheckedOptions<Request> extends Omit<HttpCacheOptions<Request>, "tags" | "methods"> {
  readonly ttl: number | ((request: Request, response: ResponseView) => Duration);
  readonly shared: boolean;
  readonly credentialHeaders: readonly string[];
  readonly methods: ReadonlySet<string>;
  readonly excludePaths: readonly string[];
  readonly cacheNonOk: boolean;
  readonly tags: readonly string[];
  readonly tagsOf: ((request: Request, response: ResponseView) => Tags) | undefined;
  readonly maxBodyBytes: number;
  readonly staleWhileRevalidate: number;
  readonly staleIfError: number;
  readonly fillTimeout: number;
  readonly streamAfter: number;
  readonly varyBy: readonly string[];
  readonly varyCookie: boolean;
  /** Whether no request with a cookie reaches the cache. */
  readonly bypassesCookies: boolean;
  readonly strict: boolean;
  readonly clientDirectives: boolean;
  readonly etag: "weak" | "strong";
  readonly statusHeader: "Cache-Status" | "X-Cache" | false;
  readonly cacheStatus: string;
}

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD, InvalidKeyError for an invalid tag. */
export function checkOptions<Request>(given: HttpCacheOptions<Request>): CheckedOptions<Request> {
  requireOptions(given, NAMES);
  const { cache, ttl = 60, tags = [], cacheControlExtra, excludePaths = [], varyBy = [] } = given;
  const { credentialHeaders = CREDENTIAL_HEADERS } = given;
  const { etag = "weak", statusHeader = "Cache-Status", cacheStatus = "xcache" } = given;
  const isCache =
    typeof cache === "object" &&
    cache !== null &&
    CACHE_METHODS.every((method) => typeof cache[method] === "function");
  expectThat(isCache, "cache", "an XCache", cache);
  for (const name of CALLBACKS) {
    expectThat(
      given[name] === undefined || typeof given[name] === "function",
      name,
      "a function",
      given[name],
    );
  }
  expectThat(isTextList(excludePaths), "excludePaths", "a list of non-empty path prefixes", excludePaths);
  expectThat(
    cacheControlExtra === undefined ||
      (typeof cacheControlExtra === "string" && FIELD_TEXT.test(cacheControlExtra)),
    "cacheControlExtra",
    "a Cache-Control directive",
    cacheControlExtra,
  );
  expectThat(
    isTextList(varyBy) && varyBy.every((name) => TOKEN.test(name)),
    "varyBy",
    "a list of field names",
    varyBy,
  );
  expectThat(
    isTextList(credentialHeaders) && credentialHeaders.every((name) => TOKEN.test(name)),
    "credentialHeaders",
    "a list of field names",
    credentialHeaders,
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
  const shared = requireFlag(given.shared, "shared", false);
  const bypassesCookies = !shared && given.user === undefined;
  return {
    ...given,
    ttl:
      typeof ttl === "function"
        ? ttl
        : requireDuration("ttl", ttl, 60, "a number of seconds of at least 0, or a function"),
    shared,
    credentialHeaders: credentialHeaders.map((name) => name.toLowerCase()),
    methods: requireMethods(given),
    excludePaths,
    cacheNonOk: requireFlag(given.cacheNonOk, "cacheNonOk", false),
    tags: typeof tags === "function" ? [] : requireTags(tags),
    tagsOf: typeof tags === "function" ? tags : undefined,
    maxBodyBytes: requireAmount("maxBodyBytes", given.maxBodyBytes, DEFAULT_BODY_BYTES),
    staleWhileRevalidate: requireDuration("staleWhileRevalidate", given.staleWhileRevalidate, 0),
    staleIfError: requireDuration("staleIfError", given.staleIfError, 0),
    fillTimeout: requireDuration("fillTimeout", given.fillTimeout, 30),
    streamAfter: requireDuration("streamAfter", given.streamAfter, 1),
    varyBy: varyBy.map((name) => name.toLowerCase()),
    varyCookie: requireFlag(given.varyCookie, "varyCookie", true) && bypassesCookies,
    bypassesCookies,
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
  const isList = isTextList(methods) && methods.every((method) => TOKEN.test(method));
  expectThat(isList, "methods", "a list of HTTP methods", methods);
  const names = methods.map((method) => method.toUpperCase());
  const other = names.find((name) => !URL_KEYED.includes(name));
  if (other === undefined || keyBuilder !== undefined) return new Set(names);
  throw new ConfigError(
    "ARGUMENT_INVALID",
    `httpCache(): methods may include ${other} only with a keyBuilder: the content of such a request is not part of its URL.`,
    { hint: `Pass a keyBuilder that covers the content, or remove ${other} from methods.` },
  );
}

const isAmount = (value: unknown): value is number => typeof value === "number" && value >= 0;

function requireAmount(field: string, value: number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  expectThat(isAmount(value), field, "a number of at least 0", value);
  return value;
}

/** In seconds. */
function requireDuration(
  field: string,
  value: Duration | undefined,
  otherwise: number,
  expected = "a number of seconds of at least 0",
): number {
  if (value === undefined) return otherwise;
  const seconds = toSeconds(value);
  expectThat(isAmount(seconds), field, `${expected}, ${OR_TEXT}`, value);
  if (field === "ttl" && typeof value === "number" && value >= HOUR_MS) warnOfMilliseconds(value, field);
  return seconds as number;
}

function isTextList(value: unknown): value is readonly string[] {
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

/** Throws TypeError if a callback that must be synchronous returned a promise, which would count as true. */
export function requireSync<T>(name: string, returned: T): T {
  if (!isPromise(returned)) return returned;
  returned.then(undefined, () => {});
  throw new TypeError(`${name} must return true or false synchronously, got a promise: it must not be async`);
}
