// Applications that run the random programs of framework-programs.ts, bare or behind the cache.
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import fastifyCompress from "@fastify/compress";
import fastifyCookie from "@fastify/cookie";
import fastifyHelmet from "@fastify/helmet";
import compression from "compression";
import cors from "cors";
import type express from "express";
import fc from "fast-check";
import type Fastify from "fastify";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type Koa from "koa";
import compose from "koa-compose";
import koaCompress from "koa-compress";
import koaSession from "koa-session";
import onHeaders from "on-headers";
import type { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { soon } from "../../support/pace.ts";
import { Folder, type FrameworkProgram, runSteps, streamOf, webStreamOf } from "./framework-programs.ts";
import { type Asked, askPipelined, type Got } from "./wire.ts";

const HUNG_MS = 1_000;
const secret = "a secret of the test, which must be long";

type Engine = HTTPCacheMiddleware<never> | undefined;

/** One server that runs whatever program its path names; the place of the cache is the first segment. */
export class FrameworkStage {
  readonly programs = new Map<string, FrameworkProgram>();
  readonly folder = new Folder();
  #server: Server | undefined;

  async open(build: BuildFramework, engine: Engine): Promise<void> {
    this.#server = createServer(await build(this, engine));
  }

  close(): void {
    this.folder.remove();
  }

  ask(asked: readonly Asked[]): Promise<Got[]> {
    return askPipelined(this.#server!, asked, soon(HUNG_MS));
  }

  /** `url`: with its mount path. */
  programOf(url: string): FrameworkProgram {
    const found = this.programs.get(url.replace(/\?.*/, ""));
    if (found === undefined) throw new Error(`no program for ${url}`);
    return found;
  }
}

export type BuildFramework = (
  stage: FrameworkStage,
  engine: Engine,
) => RequestListener | Promise<RequestListener>;

/** Ends what a program left open: it would hang without the cache, too. */
function endRaw(response: ServerResponse): void {
  if (!response.writableEnded && !response.destroyed) response.end();
}

const catchAll: express.ErrorRequestHandler = (error, _request, response, next) => {
  if (response.headersSent) next(error);
  else response.status(500).type("text").send("caught inside");
};

export const buildExpressPrograms =
  (create: typeof express): BuildFramework =>
  (stage, engine) => {
    const app = create();
    app.set("env", "production");
    const known: Record<string, () => express.RequestHandler> = {
      compression: () => compression({ threshold: 0 }),
      "on-headers": () => (_request, response, next) => {
        onHeaders(response, () => void response.setHeader("X-On-Headers", "1"));
        next();
      },
      cors: () => cors({ exposedHeaders: ["X-A"], origin: "http://other.test" }),
      header: () => (_request, response, next) => {
        response.set("X-Middleware", "1");
        next();
      },
    };
    const made = Object.fromEntries(Object.entries(known).map(([name, make]) => [name, make()]));
    const around =
      (side: "outer" | "inner"): express.RequestHandler =>
      (request, response, next) => {
        const names = stage.programOf(request.originalUrl)[side].filter((name) => name in made);
        const go = (at: number): void => {
          if (at === names.length) next();
          else made[names[at]!]!(request, response, (error) => (error ? next(error) : go(at + 1)));
        };
        go(0);
      };
    const handler: express.RequestHandler = (request, response, next) => {
      const { steps } = stage.programOf(request.originalUrl);
      const methods = response as unknown as Record<string, (...given: unknown[]) => unknown>;
      let isLeft = false;
      const leave = (given?: unknown): void => {
        if (!isLeft) next(given);
        isLeft = true;
      };
      const operations = {
        format: () =>
          void response.format({
            json: () => void response.json({ a: 1 }),
            html: () => void response.send("<p>page</p>"),
            default: () => void response.status(406).send("none"),
          }),
        sendFile: () => void response.sendFile(stage.folder.file),
        download: () => void response.download(stage.folder.file),
        pipe: (name: string) =>
          void streamOf(name)
            .on("error", () => response.destroy())
            .pipe(response),
        pipeline: (name: string) => void pipeline(streamOf(name), response, () => {}),
        throw: () => {
          throw new Error("thrown by the handler");
        },
        next: () => leave(),
        "next error": () => leave(new Error("passed on")),
        "next route": () => leave("route"),
      };
      const named = new Proxy(operations as Record<string, (...given: unknown[]) => unknown>, {
        get: (own, name: string) => own[name] ?? ((...given: unknown[]) => void methods[name]!(...given)),
      });
      runSteps(steps, response, named as never).catch(leave);
    };
    const end: (express.RequestHandler | express.ErrorRequestHandler)[] = [
      around("inner"),
      handler,
      (error: Error, request: express.Request, response: express.Response, next: express.NextFunction) => {
        if (stage.programOf(request.originalUrl).inner.includes("catches"))
          catchAll(error, request, response, next);
        else next(error);
      },
    ];
    const cached: express.RequestHandler[] = engine === undefined ? [] : [expressCache(engine as never)];
    const rest = [around("outer"), ...cached, ...end] as express.RequestHandler[];
    app.use("/prefix", ...rest);
    const router = create.Router();
    router.use(...rest);
    app.use("/router", router);
    const below = create();
    below.use(...rest);
    app.use("/sub-app", below);
    app.use("/twice", around("outer"), ...cached, ...cached, ...(end as express.RequestHandler[]));
    app.get(/^\/route/, ...rest);
    app.use(/^\/app/, ...rest);
    app.use(((error: Error, request, response, next) => {
      if (stage.programOf(request.originalUrl).outer.includes("catches"))
        catchAll(error, request, response, next);
      else next(error);
    }) as express.ErrorRequestHandler);
    return app;
  };

export const buildFastifyPrograms =
  (create: typeof Fastify, hasPlugins: boolean): BuildFramework =>
  async (stage, engine) => {
    const app = create();
    if (hasPlugins) {
      await app.register(fastifyCompress, { threshold: 0, global: false });
      await app.register(fastifyCookie);
      await app.register(fastifyHelmet, { global: false });
    }
    const hooks = (scope: FastifyInstance, side: "outer" | "inner"): void => {
      const has = (request: FastifyRequest, name: string): boolean =>
        stage.programOf(request.url)[side].includes(name);
      scope.addHook("onRequest", async (request, reply) => {
        if (has(request, "header")) reply.header("X-Hook", "1");
        if (has(request, "helmet") && hasPlugins) await reply.helmet();
        if (has(request, "cookie") && hasPlugins) reply.setCookie("hook", "1");
      });
      scope.addHook("preSerialization", async (request, _reply, payload) =>
        has(request, "serializes") ? { inside: payload } : payload,
      );
      scope.addHook("onSend", async (request, reply, payload) => {
        if (has(request, "on send fails")) throw new Error("thrown by the hook");
        if (has(request, "on send replaces")) {
          reply.removeHeader("content-length");
          return "replaced";
        }
        if (!has(request, "on send appends") || typeof payload !== "string") return payload;
        reply.removeHeader("content-length");
        return `${payload} ${side}`;
      });
    };
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
      const { steps, inner } = stage.programOf(request.url);
      const isCompressed = inner.includes("compress") && hasPlugins;
      const send = (payload: unknown): unknown =>
        isCompressed && typeof payload === "string" ? reply.compress(payload) : reply.send(payload);
      let isReturned = false;
      const operations = {
        code: (status: number) => void reply.code(status),
        header: (name: string, value: string) => void reply.header(name, value),
        removeHeader: (name: string) => void reply.removeHeader(name),
        type: (name: string) => void reply.type(name),
        hijack: () => void reply.hijack(),
        trailer: () => void reply.trailer("x-late", async () => "1"),
        setCookie: () =>
          void (hasPlugins ? reply.setCookie("own", "1") : reply.header("set-cookie", "own=1")),
        send: (payload: unknown) => void send(payload),
        return: (payload: unknown) => {
          isReturned = true;
          return payload;
        },
        "send stream": (name: string) => void reply.send(streamOf(name)),
        "return stream": (name: string) => {
          isReturned = true;
          return streamOf(name);
        },
        "send web stream": (name: string) => void reply.send(webStreamOf(name)),
        "send file": () => void reply.send(stage.folder.open()),
        redirect: () => void reply.redirect("/there"),
        callNotFound: () => void reply.callNotFound(),
        throw: () => {
          throw new Error("thrown by the handler");
        },
        "send error": () => void reply.send(new Error("sent")),
        "return error": () => {
          isReturned = true;
          return new Error("returned");
        },
      };
      try {
        const returned = await runSteps(steps, reply.raw, operations as never);
        return isReturned && !reply.sent ? returned : reply;
      } finally {
        // Nobody else ends it.
        if (steps.some(([name]) => name === "hijack")) endRaw(reply.raw);
      }
    };
    const scopes = ["app", "scope", "twice"];
    for (const place of scopes) {
      await app.register(
        async (scope) => {
          hooks(scope, "outer");
          if (engine !== undefined) {
            scope.register(fastifyCache(engine as never));
            if (place === "twice") scope.register(fastifyCache(engine as never));
          }
          scope.after(() => {
            hooks(scope, "inner");
            scope.route({ method: ["GET", "POST", "DELETE"], url: "/*", handler });
            if (place === "scope")
              scope.setErrorHandler((error, _request, reply) =>
                reply
                  .code(500)
                  .type("text/plain")
                  .send(`caught ${(error as Error).message}`),
              );
          });
        },
        { prefix: `/${place}` },
      );
    }
    await app.ready();
    return app.routing;
  };

export const buildKoaPrograms =
  (Application: typeof Koa): BuildFramework =>
  (stage, engine) => {
    const app = new Application();
    app.silent = true;
    app.keys = [secret];
    const made: Record<string, Koa.Middleware> = {
      compress: koaCompress({ threshold: 0, br: false }),
      session: koaSession({ key: "ks" }, app),
      "header after": async (context, next) => {
        await next();
        context.set("X-After", "1");
      },
      "body after": async (context, next) => {
        await next();
        if (context.body === "text") context.body = "changed text";
      },
      "status after": async (context, next) => {
        await next();
        if (context.status === 201) context.status = 200;
      },
      "throws after": async (context, next) => {
        await next();
        if (context.status === 400) throw new Error("thrown after");
      },
      catches: async (context, next) => {
        try {
          await next();
        } catch {
          context.status = 500;
          context.body = "caught";
        }
      },
    };
    const around =
      (side: "outer" | "inner"): Koa.Middleware =>
      (context, next) =>
        compose(stage.programOf(context.url)[side].map((name) => made[name]!))(context, next);
    const handler: Koa.Middleware = async (context) => {
      const operations = {
        status: (status: number) => {
          context.status = status;
        },
        set: (name: string, value: string) => context.set(name, value),
        append: (name: string, value: string) => context.append(name, value),
        remove: (name: string) => context.remove(name),
        type: (name: string) => {
          context.type = name;
        },
        length: (length: number) => {
          context.length = length;
        },
        vary: (name: string) => context.vary(name),
        etag: () => {
          context.etag = "v1";
        },
        lastModified: () => {
          context.lastModified = new Date(0);
        },
        attachment: () => context.attachment("a.txt"),
        cookie: () => void context.cookies.set("own", "1"),
        flushHeaders: () => context.flushHeaders(),
        respond: () => {
          context.respond = false;
        },
        body: (content: unknown) => {
          context.body = content;
        },
        stream: (name: string) => {
          context.body = streamOf(name);
        },
        "web stream": (name: string) => {
          context.body = webStreamOf(name);
        },
        file: () => {
          context.body = stage.folder.open();
        },
        blob: () => {
          context.body = new Blob(["blob"]);
        },
        redirect: () => context.redirect("/there"),
        throw: () => {
          throw new Error("thrown by the handler");
        },
        "throw status": (status: number) => context.throw(status, "thrown with a status"),
        nothing: () => {},
      };
      try {
        await runSteps(stage.programOf(context.url).steps, context.res, operations as never);
      } finally {
        if (context.respond === false) endRaw(context.res);
      }
    };
    const cached: Koa.Middleware[] = engine === undefined ? [] : [koaCache(engine as never)];
    const places: Record<string, Koa.Middleware> = {
      app: compose([around("outer"), ...cached, around("inner"), handler]),
      composed: compose([around("outer"), compose([...cached, around("inner")]), handler]),
      twice: compose([around("outer"), ...cached, ...cached, around("inner"), handler]),
    };
    app.use((context, next) => places[context.path.split("/")[1]!]!(context, next));
    return app.callback();
  };

/** How a client asks for a page after it was stored, or before. */
export const visit = fc.record({
  method: fc.constantFrom("GET", "GET", "GET", "GET", "HEAD", "POST"),
  headers: fc.constantFrom<Record<string, string>>(
    {},
    {},
    {},
    { "accept-encoding": "gzip" },
    { accept: "application/json" },
    { accept: "text/html" },
    { accept: "image/png" },
    { range: "bytes=0-1" },
    { "if-none-match": '"none"' },
    { "if-none-match": '"v1"' },
    { "if-modified-since": "Thu, 01 Jan 1970 00:00:01 GMT" },
    { cookie: "a=b" },
    { expect: "100-continue" },
  ),
  version: fc.constantFrom<"1.0" | "1.1">("1.1", "1.1", "1.1", "1.0"),
  query: fc.constantFrom("", "", "?callback=run"),
});
