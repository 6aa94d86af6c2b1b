// `httpCache` as middleware of Express 4 and 5.
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import { reportHead } from "./node-http/late-fields.ts";
import { expectArrival, type Handler, NodeExchange, takeArrival } from "./node-http/node-exchange.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type {
  CacheForHttp,
  HttpCacheDecision,
  HttpCacheEvent,
  HttpCacheOptions,
  ResponseView,
} from "./engine/options.ts";

/** The parts of an Express request that are used. */
export interface ExpressRequest extends IncomingMessage {
  /** The URL before routers stripped their mount path. */
  readonly originalUrl: string;
}

type Next = (error?: unknown) => void;

export type ExpressMiddleware<Request extends ExpressRequest> = (
  request: Request,
  response: ServerResponse,
  next: Next,
) => void;

/** The parts of an Express application that are used. */
interface Application {
  readonly parent?: Application;
  handle(request: IncomingMessage, response: ServerResponse, done: Next): void;
}

/**
 * `app.use(httpCache({ cache }))`. Throws ConfigError for invalid options.
 *
 * @example
 * ```ts
 * app.use("/products", httpCache({ cache, ttl: "5m", tags: ["products"] }));
 * ```
 */
export function httpCache<Request extends ExpressRequest = ExpressRequest>(
  options: HttpCacheOptions<Request> | HTTPCacheMiddleware<Request>,
): ExpressMiddleware<Request> {
  const engine = options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Request>(options);
  return (request, response, next) => {
    const arrival = takeArrival(request, engine);
    if (arrival !== undefined) {
      arrival.begin();
      reportHead(response, arrival.late);
      next();
      return;
    }
    const handler: Handler = {
      run: () => next(),
      // The remaining handlers cannot be run again on a used response, so the copy goes through the whole application. Outer
      // middleware sees it as a separate request.
      runAgain: (copy, detached, arrival) => {
        expectArrival(copy, engine, arrival);
        dispatch((request as { app?: Application }).app, copy, detached);
      },
    };
    engine.handle(new NodeExchange(request, response, handler, request, request.originalUrl)).catch(next);
  };
}

function dispatch(
  nearest: Application | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  let app = nearest;
  while (app?.parent !== undefined) app = app.parent;
  const unhandled = (): void => void response.writeHead(404).end();
  if (app === undefined) unhandled();
  else app.handle(request, response, unhandled);
}
