// `httpCache` as a plugin of Fastify 4 and 5.
import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from "fastify";
import { requirePeerVersion } from "../core/peer-package.ts";
import { HTTPCacheMiddleware } from "./engine/engine.ts";
import type { HttpCacheOptions } from "./engine/options.ts";
import type { Reply } from "./message/exchange.ts";
import { filterFields, type HeaderList } from "./message/header-list.ts";
import { isOfBody, type LateFields, reportHead } from "./node-http/late-fields.ts";
import { expectArrival, type Handler, NodeExchange, takeArrival } from "./node-http/node-exchange.ts";
import { setFields as setAll } from "./node-http/node-response.ts";

export { HTTPCacheMiddleware } from "./engine/engine.ts";
export type {
  CacheForHttp,
  HttpCacheDecision,
  HttpCacheEvent,
  HttpCacheOptions,
  ResponseView,
} from "./engine/options.ts";

/** The request fields that @fastify/compress looks at. */
const COMPRESSED_BY = ["accept-encoding", "x-no-compression"];
/** The request field by which routes with a version constraint are selected. */
const VERSIONED_BY = ["accept-version"];

class FastifyExchange extends NodeExchange<FastifyRequest> {
  readonly #reply: FastifyReply;
  readonly #hooks: OuterHooks | undefined;

  /** `hooks`: undefined if there are none. */
  constructor(request: FastifyRequest, reply: FastifyReply, handler: Handler, hooks: OuterHooks | undefined) {
    super(request.raw, reply.raw, handler, request, request.originalUrl);
    this.#reply = reply;
    this.#hooks = hooks;
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

  /** @fastify/compress sets Vary only on what it compresses, and the router does not set it at all. */
  get varyBy(): readonly string[] {
    const { server } = this.#reply;
    return [
      ...(server.hasReplyDecorator("compress") ? COMPRESSED_BY : []),
      ...(server.hasConstraintStrategy("version") ? VERSIONED_BY : []),
    ];
  }

  override reply(reply: Reply): void {
    // In place of the handler's response it comes after hooks have acted on that one.
    if (this.#hooks === undefined || this.isIntercepted) {
      this.#reply.hijack();
      super.reply(reply);
    } else this.#hooks.run(this.#reply, reply, (changed) => super.reply(changed));
  }
}

/**
 * The `onSend` hooks that were added before the cache, and so run before its own. They see stored responses, to which they may
 * add fields. The stored body has been through all hooks already, so what becomes of it now is ignored.
 */
class OuterHooks {
  readonly #replies = new WeakMap<FastifyReply, { readonly reply: Reply; send(changed: Reply): void }>();
  readonly #fills = new WeakMap<FastifyReply, LateFields>();

  constructor(app: FastifyInstance) {
    app.addHook("onSend", (_request, reply, payload, done) => {
      this.#fills.get(reply)?.end(fieldsOf(reply));
      const stored = this.#replies.get(reply);
      this.#replies.delete(reply);
      // A hook has failed, and this is the error's response.
      if (stored?.reply.status !== reply.statusCode) return done(null, payload);
      reply.hijack();
      for (const name of Object.keys(reply.getHeaders())) if (isOfBody(name)) reply.removeHeader(name);
      setFields(reply, filterFields(stored.reply.headers, isOfBody));
      stored.send({ ...stored.reply, headers: fieldsOf(reply), isPlain: false });
    });
  }

  /** Calls `send` after the hooks, with the fields as they left them. */
  run(reply: FastifyReply, stored: Reply, send: (changed: Reply) => void): void {
    this.#replies.set(reply, { reply: stored, send });
    const { status, headers, body, isText } = stored;
    reply.code(status);
    setFields(reply, headers);
    reply.send(typeof body === "string" && !isText ? Buffer.from(body, "latin1") : body);
  }

  /** Reports to `late` what they add to a response that may be stored. */
  watch(reply: FastifyReply, late: LateFields): void {
    this.#fills.set(reply, late);
    const { send } = reply;
    reply.send = (payload) => {
      reply.send = send;
      late.begin(fieldsOf(reply));
      return reply.send(payload);
    };
  }
}

/** Undefined if no `onSend` hook was added so far. */
function outerHooks(app: FastifyInstance): OuterHooks | undefined {
  const name = Object.getOwnPropertySymbols(app).find(({ description }) => description === "fastify.hooks");
  const hooks =
    name === undefined ? undefined : (app as unknown as Record<symbol, { onSend?: unknown[] }>)[name];
  return hooks?.onSend?.length === 0 ? undefined : new OuterHooks(app);
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

function setFields(reply: FastifyReply, headers: HeaderList): void {
  setAll({ setHeader: (name, value) => void reply.header(name, value) }, headers);
}

/** Fields set by other hooks and not yet applied to the raw response. */
function headersOf(reply: FastifyReply): HeaderList {
  return fieldsOf(reply, (name) => !reply.raw.hasHeader(name));
}

function fieldsOf(reply: FastifyReply, isWanted: (name: string) => boolean = () => true): HeaderList {
  const fields = reply.getHeaders();
  const list: string[] = [];
  for (const name in fields) {
    const value = fields[name];
    if (value === undefined || !isWanted(name)) continue;
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
  const hooks = outerHooks(app);
  app.addHook("onRequest", (request, reply, done) => {
    const arrival = takeArrival(request.raw, engine);
    if (arrival !== undefined) {
      arrival.begin(headersOf(reply));
      reportHead(reply.raw, arrival.late);
      hooks?.watch(reply, arrival.late);
      done();
      return;
    }
    const handler: Handler = {
      run: () => {
        if (exchange.late !== undefined) hooks?.watch(reply, exchange.late);
        done();
      },
      // As in Express, the copy goes through the whole application.
      runAgain: (copy, detached, arrival) => {
        expectArrival(copy, engine, arrival);
        request.server.routing(copy, detached);
      },
    };
    const exchange = new FastifyExchange(request, reply, handler, hooks);
    engine.handle(exchange).catch(done);
  });
}
