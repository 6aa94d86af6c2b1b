// `httpCache` for any function that takes a Request and returns a Response.
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import { FetchExchange, type FetchHandler } from "./fetch-api/fetch-exchange.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type {
  CacheForHttp,
  HttpCacheDecision,
  HttpCacheEvent,
  HttpCacheOptions,
  ResponseView,
} from "./engine/options.ts";
export type { FetchHandler } from "./fetch-api/fetch-exchange.ts";

/** A handler behind a cache. */
export type CachedHandler<Rest extends unknown[]> = (request: Request, ...rest: Rest) => Promise<Response>;

/**
 * `httpCache(options)(handler)` returns a handler that answers from the cache where it can. Throws ConfigError for invalid
 * options.
 *
 * @example
 * ```ts
 * const handler = httpCache({ cache, ttl: "5m" })((request) => new Response("hello"));
 * ```
 */
export function httpCache(
  options: HttpCacheOptions<Request> | HTTPCacheMiddleware<Request>,
): <Rest extends unknown[]>(handler: FetchHandler<Rest>) => CachedHandler<Rest> {
  const engine = options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Request>(options);
  return (handler) =>
    (request, ...rest) => {
      const run = (changed: Request): Response | Promise<Response> => handler(changed, ...rest);
      const exchange = new FetchExchange(request, { run, runAgain: run }, request);
      engine.handle(exchange).catch((error: unknown) => exchange.fail(error));
      return exchange.response;
    };
}
