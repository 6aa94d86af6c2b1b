// `dashboard()`: a page that shows a cache, for any server. Read-only and without values unless it is configured otherwise.
import type { IncomingMessage, ServerResponse } from "node:http";
import { requireDashboardOptions } from "./checked-options.ts";
import { DashboardHandler } from "./handler.ts";
import { serveNode } from "./node-adapter.ts";
import type { DashboardOptions } from "./options.ts";

export type {
  DashboardAction,
  DashboardOptions,
  DashboardResult,
  Permission,
  RequestInfo,
} from "./options.ts";

/** The part of a Hono context that is used. */
export interface HonoContext {
  readonly req: { readonly raw: Request };
}

/** The part of a Koa context that is used. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly originalUrl: string;
  readonly request: object;
  respond?: boolean | undefined;
}

interface FastifyMessage {
  readonly raw: IncomingMessage;
  readonly body?: unknown;
}

interface FastifyReply {
  readonly raw: ServerResponse;
  getHeaders(): Record<string, unknown>;
  hijack(): unknown;
}

/** The part of a Fastify instance that is used. */
export interface FastifyInstance {
  all(path: string, handler: (request: never, reply: never) => unknown): unknown;
}

/** Serves the page and its data at every path that it is given; mount it below any path. */
export interface Dashboard {
  /** For servers that pass a Request, and for `Bun.serve`, Deno and service workers. */
  fetch(request: Request): Promise<Response>;
  /** `app.all("/cache/*", board.hono)`; also `app.all("/cache", board.hono)` for the path itself. */
  readonly hono: (context: HonoContext) => Promise<Response>;
  /** `http.createServer(board.node)`. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => void;
  /** `app.use("/cache", board.express)`. */
  readonly express: (
    request: IncomingMessage,
    response: ServerResponse,
    next: (error?: unknown) => void,
  ) => void;
  /** `router.all("/cache{/*path}", board.koa)`, or `app.use(board.koa)` behind a check of the path. */
  readonly koa: (context: KoaContext) => Promise<void>;
  /** `app.register(board.fastify, { prefix: "/cache" })`. */
  readonly fastify: (app: FastifyInstance, options: unknown, done: () => void) => void;
}

/** Throws ConfigError for invalid options, and without `authorize`. */
export function dashboard(options: DashboardOptions): Dashboard {
  return dashboardOf(new DashboardHandler(requireDashboardOptions(options)));
}

function dashboardOf(handler: DashboardHandler): Dashboard {
  return {
    fetch: (request) => handler.handle(request),
    hono: (context) => handler.handle(context.req.raw, context),
    node: (request, response) => {
      serveNode(handler, request, response).catch((error: unknown) => void response.destroy(error as Error));
    },
    express: (request, response, next) => {
      serveNode(handler, request, response).catch(next);
    },
    koa: async (context) => {
      context.respond = false;
      const { body } = context.request as { body?: unknown };
      const message = Object.assign(context.req, { originalUrl: context.originalUrl });
      if (body !== undefined) Object.assign(message, { body });
      await serveNode(handler, message, context.res, context);
    },
    fastify: (app, _options, done) => {
      const serve = (request: FastifyMessage, reply: FastifyReply): void => {
        reply.hijack();
        // What hooks such as those of helmet have set so far.
        for (const [name, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) reply.raw.setHeader(name, value as string);
        }
        const message = Object.assign(request.raw, { body: request.body });
        serveNode(handler, message, reply.raw, request).catch((error: unknown) => {
          reply.raw.destroy(error as Error);
        });
      };
      app.all("/", serve as never);
      app.all("/*", serve as never);
      done();
    },
  };
}
