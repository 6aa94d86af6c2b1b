// `httpCache` for the request listeners of node:http, node:https and node:http2.
import type { IncomingMessage } from "node:http";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import { DONE } from "./engine/fast-path.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import { type Handler, NodeExchange } from "./node-http/node-exchange.ts";
import type { NodeRequest } from "./node-http/node-message.ts";
import type { NodeResponse } from "./node-http/node-response.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type {
  CacheForHttp,
  HttpCacheDecision,
  HttpCacheEvent,
  HttpCacheOptions,
  ResponseView,
} from "./engine/options.ts";

/** A request listener, as passed to createServer. */
export type Listener<Request extends NodeRequest, Response extends NodeResponse> = (
  request: Request,
  response: Response,
) => unknown;

/**
 * `createServer(httpCache(options)(listener))` answers from the cache where it can. Throws ConfigError for invalid options.
 *
 * @example
 * ```ts
 * createServer(httpCache({ cache, ttl: "5m" })((request, response) => response.end("hello"))).listen(3000);
 * ```
 */
export function httpCache<Request extends NodeRequest = IncomingMessage>(
  options: HttpCacheOptions<Request> | HTTPCacheMiddleware<Request>,
): <Response extends NodeResponse>(listener: Listener<Request, Response>) => Listener<Request, Response> {
  const engine = options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Request>(options);
  return <Response extends NodeResponse>(listener: Listener<Request, Response>) => {
    const handler: Handler = {
      run: ({ message, response }) => void listener(message as Request, response as Response),
      runAgain: (copy, response, arrival) => {
        arrival.begin();
        listener(copy as NodeRequest as Request, response as NodeResponse as Response);
      },
    };
    return (request, response) => {
      const handled = engine.handle(new NodeExchange(request, response, handler, request));
      if (handled !== DONE) handled.catch(rethrow);
    };
  };
}

/** An uncaught exception, as if the listener had thrown without the cache. */
function rethrow(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
