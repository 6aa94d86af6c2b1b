// `httpCache` as middleware of Koa 2 and 3.
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import type { Reply } from "./message/exchange.ts";
import { expectArrival, type Handler, NodeExchange, takeArrival } from "./node-http/node-exchange.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type {
  CacheForHttp,
  HttpCacheDecision,
  HttpCacheEvent,
  HttpCacheOptions,
  ResponseView,
} from "./engine/options.ts";

/** The parts of a Koa context that are used. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The URL before other middleware rewrote it. */
  readonly originalUrl: string;
  /** False: Koa does not send a response itself. */
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

/**
 * `app.use(httpCache({ cache }))`. Throws ConfigError for invalid options.
 *
 * @example
 * ```ts
 * app.use(httpCache({ cache, ttl: "5m", excludePaths: ["/admin"] }));
 * ```
 */
export function httpCache<Context extends KoaContext = KoaContext>(
  options: HttpCacheOptions<Context> | HTTPCacheMiddleware<Context>,
): KoaMiddleware<Context> {
  const engine = options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Context>(options);
  return (context, next) => {
    const { req, res, originalUrl } = context;
    const arrival = takeArrival(req, engine);
    if (arrival !== undefined) {
      arrival.begin();
      return reportingThrow(next, arrival);
    }
    return new Promise((resolve, reject) => {
      let isCalled = false;
      const handler: Handler = {
        // Koa sends the response after all middleware has returned, so this one must not wait for it. Later changes and error
        // responses are seen by the interception.
        run: () => {
          isCalled = true;
          reportingThrow(next, exchange).then(resolve, reject);
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

/** Reports that the handler threw before outer middleware turns the error into a response. */
async function reportingThrow(
  next: () => Promise<unknown>,
  failure: { handlerThrew(): void },
): Promise<void> {
  try {
    await next();
  } catch (error) {
    failure.handlerThrew();
    throw error;
  }
}
