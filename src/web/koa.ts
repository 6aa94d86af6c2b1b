// `httpCache` as middleware of Koa 2 and 3.
import type { IncomingMessage, ServerResponse } from "node:http";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import type { Reply } from "./message/exchange.ts";
import { filterFields } from "./message/header-list.ts";
import { isOfBody, type LateFields } from "./node-http/late-fields.ts";
import { expectArrival, type Handler, NodeExchange, takeArrival } from "./node-http/node-exchange.ts";
import { headersOf, setHeaders, sinkOf } from "./node-http/node-response.ts";

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
  status: number;
  message: string;
  body: unknown;
  readonly app: {
    callback(): (request: IncomingMessage, response: ServerResponse) => unknown;
    readonly middleware: readonly unknown[];
  };
}

export type KoaMiddleware<Context extends KoaContext> = (
  context: Context,
  next: () => Promise<unknown>,
) => Promise<unknown>;

class KoaExchange<Context extends KoaContext> extends NodeExchange<Context> {
  /** Whether other middleware will act on a response before Koa sends it. */
  readonly #hasOuter: boolean;

  constructor(context: Context, handler: Handler, hasOuter: boolean) {
    super(context.req, context.res, handler, context, context.originalUrl);
    this.#hasOuter = hasOuter;
  }

  override reply(reply: Reply): void {
    // In place of the handler's response it comes after outer middleware has acted on that one.
    if (this.#hasOuter && !this.isIntercepted) {
      answer(this.native, reply);
      return;
    }
    this.native.respond = false;
    super.reply(reply);
  }
}

/**
 * Gives Koa a response to send. Outer middleware may add fields to it, or replace it by one with another status. The stored
 * body has been through outer middleware already, so what becomes of it now is ignored.
 */
function answer(context: KoaContext, reply: Reply): void {
  const { res } = context;
  const isWithType = res.hasHeader("content-type");
  const { status, message } = reply;
  context.status = status;
  if (message !== "" && context.req.httpVersionMajor < 2) context.message = message;
  const body = context.req.method === "HEAD" ? undefined : bodyOf(reply);
  if (body !== undefined) context.body = body;
  // Koa invents one.
  if (!isWithType) res.removeHeader("content-type");
  setHeaders(res, reply.headers);
  const given = filterFields(headersOf(sinkOf(res)), isOfBody);
  const { write, end } = res;
  let isReplaced = false;
  const isTaken = (): boolean => {
    if (isReplaced) return true;
    isReplaced = context.body !== body && res.statusCode === status && !res.headersSent;
    if (!isReplaced) Object.assign(res, { write, end });
    else {
      for (const name of res.getHeaderNames()) if (isOfBody(name)) res.removeHeader(name);
      setHeaders(res, given);
      end.call(res, body, "utf8");
    }
    return isReplaced;
  };
  Object.assign(res, {
    write: (...args: unknown[]) => isTaken() || write.apply(res, args as never),
    end: (...args: unknown[]) => (isTaken() ? res : end.apply(res, args as never)),
  });
}

/** As a handler would have set it. Undefined if Koa must not set any. */
function bodyOf({ status, body, isText }: Reply): string | Buffer | undefined {
  if (body === undefined) return status === 204 || status === 205 || status === 304 ? undefined : "";
  if (typeof body !== "string") return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return isText ? body : Buffer.from(body, "latin1");
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
  const middleware: KoaMiddleware<Context> = (context, next) => {
    const arrival = takeArrival(context.req, engine);
    if (arrival !== undefined) {
      arrival.begin();
      return run(next, context, arrival);
    }
    return new Promise((resolve, reject) => {
      let isCalled = false;
      const handler: Handler = {
        // Koa sends the response after all middleware has returned, so this one must not wait for it. Later changes and error
        // responses are seen by the interception.
        run: () => {
          isCalled = true;
          run(next, context, exchange).then(resolve, reject);
        },
        // As in Express, the copy goes through the whole application.
        runAgain: (copy, detached, arrival) => {
          expectArrival(copy, engine, arrival);
          context.app.callback()(copy, detached);
        },
      };
      const exchange = new KoaExchange(context, handler, context.app.middleware[0] !== middleware);
      engine.handle(exchange).then(() => {
        if (!isCalled) resolve(undefined);
      }, reject);
    });
  };
  return middleware;
}

/** Calls the handler, and reports what it did before outer middleware acts on its response or error. */
async function run(
  next: () => Promise<unknown>,
  context: KoaContext,
  reports: { handlerReturned?(): void; handlerThrew(): void; readonly late: LateFields | undefined },
): Promise<void> {
  try {
    await next();
    if (context.respond !== false) reports.handlerReturned?.();
    if (reports.late !== undefined && context.respond !== false) watchOuter(context.res, reports.late);
  } catch (error) {
    reports.handlerThrew();
    throw error;
  }
}

/** Reports what outer middleware adds until Koa sends the response, on which inner middleware may then act once more. */
function watchOuter(res: ServerResponse, late: LateFields): void {
  const { write, end } = res;
  late.begin(headersOf(sinkOf(res)));
  const watched = {
    write: (...given: unknown[]) => {
      over();
      return write.apply(res, given as never);
    },
    end: (...given: unknown[]) => {
      over();
      return end.apply(res, given as never);
    },
  };
  const over = (): void => {
    if (res.write === (watched.write as unknown)) res.write = write;
    if (res.end === (watched.end as unknown)) res.end = end;
    late.end(headersOf(sinkOf(res)));
  };
  Object.assign(res, watched);
}
