// `httpCache` as a plugin of Fastify 4 and 5.
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { requirePeerVersion } from "../core/peer-package.ts";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import type { Reply } from "./message/exchange.ts";
import type { HeaderList } from "./message/header-list.ts";
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

class FastifyExchange extends NodeExchange<FastifyRequest> {
  readonly #reply: FastifyReply;

  constructor(request: FastifyRequest, reply: FastifyReply, handler: Handler) {
    super(request.raw, reply.raw, handler, request, request.originalUrl);
    this.#reply = reply;
  }

  override get mayHavePending(): boolean {
    return true;
  }

  override pendingHeaders(): HeaderList {
    return headersOf(this.#reply);
  }

  /** Cookies of @fastify/cookie become a field in its `onSend` hook, which does not run for a stored response. */
  get bypass(): string | undefined {
    const name = cookiesOf(this.#reply);
    if (name === undefined) return undefined;
    const { size } = (this.#reply as unknown as Record<symbol, { size?: number } | null>)[name] ?? {};
    return size !== undefined && size > 0 ? "set-cookie" : undefined;
  }

  override reply(reply: Reply): void {
    // Payload hooks are skipped: they already ran when this response was stored.
    this.#reply.hijack();
    super.reply(reply);
  }
}

const cookies = new WeakMap<object, { readonly name: symbol | undefined }>();

/** The property in which @fastify/cookie keeps the cookies of a reply. Undefined without it. */
function cookiesOf(reply: FastifyReply): symbol | undefined {
  const { server } = reply;
  let known = cookies.get(server);
  if (known === undefined) {
    const names = Object.getOwnPropertySymbols(reply);
    known = { name: names.find(({ description }) => description === "fastify.reply.setCookies") };
    cookies.set(server, known);
  }
  return known.name;
}

/** Fields set by other hooks and not yet applied to the raw response. */
function headersOf(reply: FastifyReply): HeaderList {
  const { raw } = reply;
  const fields = reply.getHeaders();
  const list: string[] = [];
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined || raw.hasHeader(name)) continue;
    if (Array.isArray(value)) for (const line of value) list.push(name, String(line));
    else list.push(name, String(value));
  }
  return list;
}

/**
 * `app.register(httpCache({ cache }))` caches the routes of the scope it is registered in. Throws ConfigError for invalid
 * options.
 *
 * @example
 * ```ts
 * app.register(httpCache({ cache, ttl: "5m", tags: ["products"] }));
 * ```
 */
export function httpCache(
  options: HttpCacheOptions<FastifyRequest> | HTTPCacheMiddleware<FastifyRequest>,
): FastifyPluginCallback {
  const engine =
    options instanceof HTTPCacheMiddleware ? options : new HTTPCacheMiddleware<FastifyRequest>(options);
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    requirePeerVersion("fastify", "xcache/web/fastify", { found: app.version });
    addHook(app, engine);
    done();
  };
  // Without skip-override Fastify would encapsulate the plugin in a scope without any routes.
  return Object.assign(plugin, {
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "xcache",
    [Symbol.for("plugin-meta")]: { name: "xcache", fastify: ">=4" },
  });
}

function addHook(app: FastifyInstance, engine: HTTPCacheMiddleware<FastifyRequest>): void {
  app.addHook("onRequest", (request, reply, done) => {
    const arrival = takeArrival(request.raw, engine);
    if (arrival !== undefined) {
      arrival.begin(headersOf(reply));
      reportHead(reply.raw, arrival.late);
      done();
      return;
    }
    const handler: Handler = {
      run: () => done(),
      // As in Express, the copy goes through the whole application.
      runAgain: (copy, detached, arrival) => {
        expectArrival(copy, engine, arrival);
        request.server.routing(copy, detached);
      },
    };
    engine.handle(new FastifyExchange(request, reply, handler)).catch(done);
  });
}
