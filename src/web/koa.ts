// `httpCache` as a middleware of Koa 3.
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import type { Reply } from "./message/exchange.ts";
import { arrivalOf, expectArrival, type Handler, NodeExchange } from "./node-http/node-exchange.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type { CacheForHttp, HttpCacheEvent, HttpCacheOptions, ResponseView } from "./engine/options.ts";

/** What is used of a context of Koa. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The URL before anybody took a part of it away. */
  readonly originalUrl: string;
  /** false: Koa leaves the response alone. */
  respond?: boolean | undefined;
  readonly app: { callback(): (request: IncomingMessage, response: ServerResponse) => unknown };
}

export type KoaMiddleware<Context extends KoaContext> = (
  context: Context,
  next: () => Promise<unknown>,
) => Promise<unknown>;

class KoaExchange<Context extends KoaContext> extends NodeExchange<Context> {
  override reply(reply: Reply): void {
    this.native.respond = false;
    super.reply(reply);
  }
}

/** `app.use(httpCache({ cache }))`. Throws ConfigError for options that cannot be. */
export function httpCache<Context extends KoaContext = KoaContext>(
  options: HttpCacheOptions<Context> | HTTPCacheMiddleware<Context>,
): KoaMiddleware<Context> {
  const engine = options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Context>(options);
  return (context, next) => {
    const { req, res, originalUrl } = context;
    const arrival = arrivalOf(req, engine);
    if (arrival !== undefined) {
      arrival.begin();
      return disowning(next, arrival);
    }
    return new Promise((resolve, reject) => {
      let isCalled = false;
      const handler: Handler = {
        // Koa sends the response when all its middlewares have returned: this one must not wait for it. What they say after
        // that, and what they make of an error, is seen on its way to the client.
        run: () => {
          isCalled = true;
          disowning(next, exchange).then(resolve, reject);
        },
        // As in Express, the copy goes through the whole application.
        runAgain: (copy, detached, arrival) => {
          expectArrival(copy, engine, arrival);
          context.app.callback()(copy, detached);
        },
      };
      const exchange = new KoaExchange(req, res, handler, context, originalUrl);
      engine.handle(exchange).then(() => {
        if (!isCalled) resolve(undefined);
      }, reject);
    });
  };
}

/** Tells of an error before others make something of it. */
async function disowning(next: () => Promise<unknown>, told: { disown(): void }): Promise<void> {
  try {
    await next();
  } catch (error) {
    told.disown();
    throw error;
  }
}
