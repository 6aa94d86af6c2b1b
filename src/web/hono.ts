// `httpCache` as Hono 4 middleware.
import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import { copyOf, type FetchCalls, FetchExchange } from "./fetch-api/fetch-exchange.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type { CacheForHttp, HttpCacheEvent, HttpCacheOptions, ResponseView } from "./engine/options.ts";

/** The part of a Hono application that is used. */
export interface HonoApplication {
  fetch(request: Request, ...rest: never[]): Response | Promise<Response>;
}

/** Called when a background copy of a request reaches its middleware. */
type Arrived = (context: Context, next: Next) => Promise<void>;

const arrivals = new WeakMap<Request, { readonly engine: unknown; readonly arrived: Arrived }>();

/**
 * `app.use(httpCache({ cache }))`. If the application is passed as the second argument, stale responses are refreshed in the
 * background by sending the request through the application again; without it the first request waits. Throws ConfigError
 * for invalid options.
 */
export function httpCache<E extends Env = Env>(
  options: HttpCacheOptions<Context<E>> | HTTPCacheMiddleware<Context<E>>,
  app?: HonoApplication,
): MiddlewareHandler<E> {
  const engine =
    options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Context<E>>(options);
  return async (context, next) => {
    const { raw } = context.req;
    const arrival = arrivals.get(raw);
    if (arrival?.engine === engine) {
      arrivals.delete(raw);
      return arrival.arrived(context as Context, next);
    }
    const calls = new HonoCalls(context as Context, next, engine, app);
    const exchange = new FetchExchange(raw, calls, context);
    engine.handle(exchange).catch((error: unknown) => exchange.fail(error));
    let response: Response;
    try {
      response = await exchange.response;
    } finally {
      context.req.raw = raw;
    }
    if (exchange.isReplied) addOuter(response, calls.outer ?? context.res.headers);
    replaceResponse(context as Context, response);
  };
}

class HonoCalls implements FetchCalls {
  readonly #context: Context;
  readonly #next: Next;
  readonly #engine: unknown;
  readonly #app: HonoApplication | undefined;
  hasThrown = false;
  /** Fields set by outer middleware before the handler was called for this client. */
  outer: Headers | undefined;
  #outerOfCopy: Headers | undefined;

  constructor(context: Context, next: Next, engine: unknown, app: HonoApplication | undefined) {
    this.#context = context;
    this.#next = next;
    this.#engine = engine;
    this.#app = app;
  }

  run(request: Request): Promise<Response> {
    this.outer = outerOf(this.#context);
    return this.#call(this.#context, this.#next, request);
  }

  get runAgain(): ((copy: Request) => Promise<Response>) | undefined {
    const app = this.#app;
    return app === undefined ? undefined : (copy) => this.#sendThrough(app, copy);
  }

  isOuter(name: string, value: string): boolean {
    return (this.outer ?? this.#outerOfCopy)?.get(name) === value;
  }

  async #call(context: Context, next: Next, request: Request): Promise<Response> {
    context.req.raw = request;
    await next();
    this.hasThrown = context.error !== undefined;
    return context.res;
  }

  /** A response from outer middleware, before this one is reached, is not the handler's and becomes an error. */
  #sendThrough(app: HonoApplication, copy: Request): Promise<Response> {
    const { env, req } = this.#context;
    const sent = copyOf(req.raw);
    return new Promise((resolve, reject) => {
      const arrived: Arrived = async (context, next) => {
        this.#outerOfCopy = outerOf(context);
        const response = await this.#call(context, next, copy);
        // The body is consumed by the recorder.
        replaceResponse(context, new Response(null, response));
        resolve(response);
      };
      arrivals.set(sent, { engine: this.#engine, arrived });
      const fetch = app.fetch as (request: Request, ...rest: unknown[]) => Response | Promise<Response>;
      Promise.resolve(fetch(sent, env)).then(() => resolve(Response.error()), reject);
    });
  }
}

function outerOf(context: Context): Headers {
  return new Headers(context.newResponse(null).headers);
}

/** Assigning undefined first keeps Hono from merging the old response's fields into the new one. */
function replaceResponse(context: Context, response: Response): void {
  context.res = undefined;
  context.res = response;
}

/** Keeps fields that outer middleware set unless the response has them. */
function addOuter(response: Response, outer: Headers): void {
  for (const [name, value] of outer) {
    const { headers } = response;
    if (name === "set-cookie") headers.append(name, value);
    else if (!headers.has(name)) headers.set(name, value);
  }
}
