// @CacheResponse: remembers what a route handler returns.
import type { CallHandler, ExecutionContext, NestInterceptor } from "@nestjs/common";
import type { Observable } from "rxjs";
import type { GetOrSetOptions } from "../../core/options.ts";
import { isPlain } from "../../db/tracking/read-cache.ts";
import { XCache } from "../../xcache.ts";
import { nest, rx } from "./module.ts";

/** What is used of a request, of Express or Fastify. */
export interface CachedRequest {
  readonly method: string;
  readonly url: string;
  /** The URL before any router took a part of it away. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface CacheResponseOptions extends Omit<GetOrSetOptions, "tags" | "forceLoad"> {
  /** Labels for invalidateTags, fixed or made from the request. Default: none. */
  readonly tags?:
    | readonly string[]
    | ((request: CachedRequest, context: ExecutionContext) => readonly string[]);
  /**
   * What tells one answer from another; undefined: do not cache this request. Default: host and URL, and requests with
   * `Authorization` or `Cookie` are not cached.
   */
  readonly key?: (request: CachedRequest, context: ExecutionContext) => string | undefined;
}

const OPTIONS = Symbol("xcache:response");
/** Where Nest notes that a handler sends events. */
const SENDS_EVENTS = "__sse__";
/** Where it notes the versions of an API that a handler or a controller is for. */
const VERSIONS = "__version__";

/** Handed to those who waited for somebody else's call: what it returned cannot be shared. */
const NOT_SHARED = Object.freeze({ "xcache:not-shared": true });

const keys = new WeakSet<object>();
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
    // Both the class and the method may be decorated.
    if (request.method !== "GET" || keys.has(request)) return next.handle();
    const key = keyOf(request, context, options);
    if (key === undefined) return next.handle();
    keys.add(request);
    return rx.from(
      this.#answer(`nest:${nameOf(context)}${versionOf(context)}:${key}`, request, context, next, options),
    );
  }

  async #answer(
    key: string,
    request: CachedRequest,
    context: ExecutionContext,
    next: CallHandler,
    { key: _, tags = [], ...terms }: CacheResponseOptions,
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
      { ...terms, tags: list },
    );
    if (own !== undefined) return own.result;
    return isNotShared(answer) ? call() : answer;
  }
}

nest.Injectable()(ResponseCacheInterceptor);
nest.Inject(XCache)(ResponseCacheInterceptor, undefined, 0);

/**
 * Caches what a handler returns to GET requests, or what all handlers of a controller do. Only plain data is stored, and
 * neither status nor headers: where those matter, use `httpCache`. `@CacheResponse(false)` excludes a handler.
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

/** Versions may share URL and names, and differ by a header. */
function versionOf(context: ExecutionContext): string {
  const versions: unknown =
    Reflect.getMetadata(VERSIONS, context.getHandler()) ?? Reflect.getMetadata(VERSIONS, context.getClass());
  return versions === undefined ? "" : `@${[versions].flat().map(String).join()}`;
}

/** It went through the cache on its way to those who waited, which gives each a copy. */
function isNotShared(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "xcache:not-shared" in answer;
}

/** An instance would come back without its class, and what serializes by class would then show fields it hides. */
function warnOnce(name: string, result: unknown): void {
  if (result === undefined || result instanceof nest.StreamableFile || warned.has(name)) return;
  warned.add(name);
  process.emitWarning(
    `@CacheResponse: ${name} returned an instance of a class, which is not cached. Return plain data.`,
    "XCacheWarning",
  );
}
