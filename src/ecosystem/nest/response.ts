// @CacheResponse: caches the return value of a route handler.
import type { CallHandler, ExecutionContext, NestInterceptor } from "@nestjs/common";
import type { Observable } from "rxjs";
import type { GetOrSetOptions } from "../../core/options.ts";
import { isPlain } from "../../core/snapshot.ts";
import { XCache } from "../../xcache.ts";
import { nest, rx } from "./module.ts";

/** The parts of an Express or Fastify request that are used. */
export interface CachedRequest {
  readonly method: string;
  readonly url: string;
  /** The URL before routers stripped their mount path. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface CacheResponseOptions extends Omit<GetOrSetOptions, "tags" | "forceLoad"> {
  /** Tags for invalidateTags, fixed or computed from the request. Default: none. */
  readonly tags?:
    | readonly string[]
    | ((request: CachedRequest, context: ExecutionContext) => readonly string[]);
  /**
   * Returns the key of a request, or undefined not to cache it. Default: host and URL, and requests with `Authorization`
   * or `Cookie` are not cached.
   */
  readonly key?: (request: CachedRequest, context: ExecutionContext) => string | undefined;
}

const OPTIONS = Symbol("xcache:response");
/** Nest's metadata key for handlers of server-sent events. */
const SENDS_EVENTS = "__sse__";
/** Nest's metadata key for the API versions of a handler or controller. */
const VERSIONS = "__version__";

/** The load's result for waiting requests if the handler's return value cannot be shared. */
const NOT_SHARED = Object.freeze({ "xcache:not-shared": true });

const handled = new WeakSet<object>();
const warned = new Set<string>();

class ResponseCacheInterceptor implements NestInterceptor {
  readonly #cache: XCache;

  constructor(cache: XCache) {
    this.#cache = cache;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const options = optionsOf(context);
    if (options === undefined || context.getType() !== "http") return next.handle();
    const request = context.switchToHttp().getRequest<CachedRequest>();
    // The class and the method may both be decorated; cache only once.
    if (request.method !== "GET" || handled.has(request)) return next.handle();
    const key = keyOf(request, context, options);
    if (key === undefined) return next.handle();
    handled.add(request);
    return rx.from(
      this.#answer(`nest:${nameOf(context)}${versionOf(context)}:${key}`, request, context, next, options),
    );
  }

  async #answer(
    key: string,
    request: CachedRequest,
    context: ExecutionContext,
    next: CallHandler,
    { key: _, tags = [], ...shared }: CacheResponseOptions,
  ): Promise<unknown> {
    const call = () => rx.lastValueFrom<unknown, unknown>(next.handle(), { defaultValue: undefined });
    let own: { readonly result: unknown } | undefined;
    const list = typeof tags === "function" ? tags(request, context) : tags;
    const answer = await this.#cache.getOrSet<unknown>(
      key,
      async ({ skip }) => {
        own = { result: await call() };
        if (own.result !== undefined && isPlain(own.result)) return own.result;
        warnOnce(nameOf(context), own.result);
        skip();
        return NOT_SHARED;
      },
      { ...shared, tags: list },
    );
    if (own !== undefined) return own.result;
    return isNotShared(answer) ? call() : answer;
  }
}

nest.Injectable()(ResponseCacheInterceptor);
nest.Inject(XCache)(ResponseCacheInterceptor, undefined, 0);

/**
 * Caches the return value of a handler, or of all handlers of a controller, for GET requests. Only plain data is stored,
 * without status and headers: if those matter, use `httpCache`. `@CacheResponse(false)` excludes a handler.
 */
export function CacheResponse(options: CacheResponseOptions | false = {}): ClassDecorator & MethodDecorator {
  return nest.applyDecorators(
    nest.SetMetadata(OPTIONS, options),
    nest.UseInterceptors(ResponseCacheInterceptor),
  );
}

function optionsOf(context: ExecutionContext): CacheResponseOptions | undefined {
  const handler = context.getHandler();
  if (Reflect.getMetadata(SENDS_EVENTS, handler) === true) return undefined;
  const options: CacheResponseOptions | false =
    Reflect.getMetadata(OPTIONS, handler) ?? Reflect.getMetadata(OPTIONS, context.getClass());
  return options === false ? undefined : options;
}

function keyOf(
  request: CachedRequest,
  context: ExecutionContext,
  { key }: CacheResponseOptions,
): string | undefined {
  if (key !== undefined) return key(request, context);
  const { authorization, cookie, host } = request.headers;
  if (authorization !== undefined || cookie !== undefined) return undefined;
  return `${String(host)}${request.originalUrl ?? request.url}`;
}

const nameOf = (context: ExecutionContext): string =>
  `${context.getClass().name}.${context.getHandler().name}`;

/** Versions may share their URL and names and be selected by a header. */
function versionOf(context: ExecutionContext): string {
  const versions: unknown =
    Reflect.getMetadata(VERSIONS, context.getHandler()) ?? Reflect.getMetadata(VERSIONS, context.getClass());
  return versions === undefined ? "" : `@${[versions].flat().map(String).join()}`;
}

/** Compares by content: the cache gives each waiting caller a copy. */
function isNotShared(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "xcache:not-shared" in answer;
}

/** A cached instance would lose its class, and class-based serialization could then expose fields it should hide. */
function warnOnce(name: string, result: unknown): void {
  if (result === undefined || result instanceof nest.StreamableFile || warned.has(name)) return;
  warned.add(name);
  process.emitWarning(
    `@CacheResponse: ${name} returned an instance of a class or an object that contains itself, which is not cached. Return plain data.`,
    "XCacheWarning",
  );
}
