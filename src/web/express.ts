// `httpCache` as a middleware of Express 5.
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import { arrivalOf, expectArrival, type Handler, NodeExchange } from "./node-http/node-exchange.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type { CacheForHttp, HttpCacheEvent, HttpCacheOptions, ResponseView } from "./engine/options.ts";

/** What is used of a request of Express. */
export interface ExpressRequest extends IncomingMessage {
  /** The URL before any router took a part of it away. */
  readonly originalUrl: string;
}

type Next = (error?: unknown) => void;

export type ExpressMiddleware<Request extends ExpressRequest> = (
  request: Request,
  response: ServerResponse,
  next: Next,
) => void;

/** What is used of an application of Express. */
interface Application {
  readonly parent?: Application;
  handle(request: IncomingMessage, response: ServerResponse, done: Next): void;
}

/** `app.use(httpCache({ cache }))`. Throws ConfigError for options that cannot be. */
export function httpCache<Request extends ExpressRequest = ExpressRequest>(
  options: HttpCacheOptions<Request> | HTTPCacheMiddleware<Request>,
): ExpressMiddleware<Request> {
  const engine = options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Request>(options);
  return (request, response, next) => {
    const arrival = arrivalOf(request, engine);
    if (arrival !== undefined) {
      arrival.begin();
      next();
      return;
    }
    const handler: Handler = {
      run: () => next(),
      // A response that was used cannot be given to the remaining handlers again, so the copy goes through the whole
      // application. Middlewares further out see it as a request of its own.
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
