// `httpCache` as Hono 4 middleware.
import type { Context, Env, MiddlewareHandler, Next } from "hono";
import { nextTurn } from "../core/event-loop.ts";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import { cancelledWhen } from "./fetch-api/fetch-body.ts";
import { copyOf, type FetchCalls, FetchExchange, type SentHead } from "./fetch-api/fetch-exchange.ts";
import { type ClientSocket, hasCertificate } from "./node-http/node-message.ts";
import { headWhenSent } from "./node-http/node-pass.ts";
import { type NodeResponse, onGone } from "./node-http/node-response.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type {
  CacheForHttp,
  HttpCacheDecision,
  HttpCacheEvent,
  HttpCacheOptions,
  ResponseView,
} from "./engine/options.ts";

/** The part of a Hono application that is used. */
export interface HonoApplication {
  fetch(request: Request, ...rest: never[]): Response | Promise<Response>;
}

/** Requests that reached an application whose responses are seen when all of its middleware has acted on them. */
const seenThrough = new WeakSet<Request>();
const watches = new WeakMap<Request, ((sent: SentHead) => void)[]>();
const watchedApps = new WeakSet<HonoApplication>();
/** The requests that an application got, by the changed copies of them that a cache shows to what is behind it. */
const originals = new WeakMap<Request, Request>();

/** Called when a background copy of a request reaches its middleware. */
type Arrived = (context: Context, next: Next) => Promise<void>;

const arrivals = new WeakMap<Request, { readonly engine: unknown; readonly arrived: Arrived }>();

/**
 * `app.use(httpCache({ cache }))`. If the application is passed as the second argument, stale responses are refreshed in the
 * background by sending the request through the application again; without it the first request waits. On servers other than
 * @hono/node-server only then is it certain that a cookie set further out after `next()` keeps a response from being stored.
 * Throws ConfigError for invalid options.
 *
 * @example
 * ```ts
 * app.use("/products/*", httpCache({ cache, ttl: "5m" }, app));
 * ```
 */
export function httpCache<E extends Env = Env>(
  options: HttpCacheOptions<Context<E>> | HTTPCacheMiddleware<Context<E>>,
  app?: HonoApplication,
): MiddlewareHandler<E> {
  const engine =
    options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<Context<E>>(options);
  if (app !== undefined) watchApp(app);
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

/** Requests of background refreshes: they have the environment of a client that does not wait for them. */
const copies = new WeakSet<Request>();

class HonoCalls implements FetchCalls {
  readonly #context: Context;
  readonly #isOfCopy: boolean;
  readonly #next: Next;
  readonly #engine: unknown;
  readonly #app: HonoApplication | undefined;
  hasThrown = false;
  /** Fields set by outer middleware before the handler was called for this client. */
  outer: Headers | undefined;
  #outerOfCopy: Headers | undefined;
  /** What the application made of the background copy. */
  #madeOfCopy: Promise<SentHead> | undefined;

  constructor(context: Context, next: Next, engine: unknown, app: HonoApplication | undefined) {
    this.#context = context;
    this.#isOfCopy = copies.has(context.req.raw);
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

  get hasClientCertificate(): boolean {
    const env = this.#context.env as { incoming?: { socket?: ClientSocket } } | undefined;
    return hasCertificate(env?.incoming?.socket);
  }

  /** The response of @hono/node-server, if it is the server. */
  get #outgoing(): NodeResponse | undefined {
    const { outgoing } = (this.#context.env ?? {}) as { outgoing?: NodeResponse };
    return typeof outgoing?.writeHead === "function" ? outgoing : undefined;
  }

  /** @hono/node-server neither reads nor cancels a body that it gets after its client has left. */
  endWithClient(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const outgoing = this.#isOfCopy ? undefined : this.#outgoing;
    return outgoing === undefined ? body : cancelledWhen(body, (gone) => onGone(outgoing, gone));
  }

  watchHead(isDetached: boolean): () => Promise<SentHead> {
    if (isDetached) return () => this.#madeOfCopy!;
    const context = this.#context;
    // The environment of a copy is that of a client that was served.
    const outgoing = this.#isOfCopy ? undefined : this.#outgoing;
    if (outgoing !== undefined) {
      const sent = headWhenSent(outgoing);
      return () => sent;
    }
    const raw = originals.get(context.req.raw) ?? context.req.raw;
    if (seenThrough.has(raw)) {
      // Each cache on the way of the request has its own.
      const others = watches.get(raw) ?? [];
      const sent = new Promise<SentHead>((resolve) => watches.set(raw, [...others, resolve]));
      return () => sent;
    }
    // No certainty: outer middleware may still be at work.
    return () => nextTurn().then(() => headOf(context.res));
  }

  async #call(context: Context, next: Next, request: Request): Promise<Response> {
    const { raw } = context.req;
    if (request !== raw) originals.set(request, originals.get(raw) ?? raw);
    context.req.raw = request;
    await next();
    this.hasThrown = context.error !== undefined;
    return context.res;
  }

  /** A response from outer middleware, before this one is reached, is not the handler's and becomes an error. */
  #sendThrough(app: HonoApplication, copy: Request): Promise<Response> {
    const { env, req } = this.#context;
    const sent = copyOf(req.raw);
    copies.add(sent);
    copies.add(copy);
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
      const made = Promise.resolve(fetch(sent, env));
      this.#madeOfCopy = made.then(headOf, () => undefined);
      made.then(() => resolve(Response.error()), reject);
    });
  }
}

function headOf({ status, headers }: Response): SentHead {
  return { status, headers: [...headers].flat() };
}

function notify(request: Request, sent: SentHead): void {
  for (const resolve of watches.get(request) ?? []) resolve(sent);
}

/** Replaces the application's `fetch`, so that the responses it returns are seen. */
function watchApp(app: HonoApplication): void {
  if (watchedApps.has(app)) return;
  watchedApps.add(app);
  const fetch = app.fetch as (request: Request, ...rest: unknown[]) => Response | Promise<Response>;
  const watched = async (request: Request, ...rest: unknown[]): Promise<Response> => {
    seenThrough.add(request);
    try {
      const response = await fetch.call(app, request, ...rest);
      notify(request, headOf(response));
      return response;
    } catch (error) {
      notify(request, undefined);
      throw error;
    }
  };
  app.fetch = (request: Request, ...rest: unknown[]) =>
    // On Node the head is seen as it leaves, unless it is that of a copy.
    (rest[0] as { outgoing?: unknown } | undefined)?.outgoing === undefined || copies.has(request)
      ? watched(request, ...rest)
      : fetch.call(app, request, ...rest);
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
