// Servers that run random handler programs, bare or behind the cache, built with each framework and its older major.
import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import {
  type ClientHttp2Session,
  connect,
  createServer as createHttp2Server,
  type Http2Server,
} from "node:http2";
import type { AddressInfo } from "node:net";
import express from "express";
import express4 from "express-4";
import Fastify from "fastify";
import Fastify4 from "fastify-4";
import Koa from "koa";
import Koa2 from "koa-2";
import type { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { soon } from "../../support/pace.ts";
import { applyPatches, destroy, type Program, perform, type Trace } from "./programs.ts";
import { askOnStream, askOnWire, type Got } from "./wire.ts";

const HUNG_MS = 1_000;

/** One server that runs whatever program its path names. */
export class Stage {
  readonly programs = new Map<string, Program>();
  readonly #traces = new Map<string, Trace>();
  readonly #runs = new Map<string, Promise<void>>();
  #server: Server | undefined;
  #http2: { readonly server: Http2Server; readonly session: ClientHttp2Session } | undefined;

  async open(build: Build, engines: readonly HTTPCacheMiddleware<never>[]): Promise<void> {
    const { listener, isHttp2 = false } = await build(this, engines);
    if (!isHttp2) {
      this.#server = createServer(listener);
      return;
    }
    const server = createHttp2Server(listener as never);
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    this.#http2 = { server, session: connect(`http://127.0.0.1:${port}`) };
  }

  close(): void {
    this.#http2?.session.destroy();
    this.#http2?.server.close();
  }

  ask(path: string, method: string): Promise<Got> {
    const limit = soon(HUNG_MS);
    if (this.#http2 !== undefined) return askOnStream(this.#http2.session, path, method, limit);
    return askOnWire(this.#server!, path, method, limit);
  }

  programOf(url: string): Program {
    const found = this.programs.get(url);
    if (found === undefined) throw new Error(`no program for ${url}`);
    return found;
  }

  /** Runs the program of this URL. A response may arrive before its program is over. */
  run(url: string, response: ServerResponse, next?: (error?: unknown) => void): Promise<void> {
    const trace: Trace = [];
    this.#traces.set(url, trace);
    const run = perform(this.programOf(url), response, trace, next);
    this.#runs.set(
      url,
      run.catch(() => {}),
    );
    return run;
  }

  async traceOf(url: string): Promise<Trace | undefined> {
    await this.#runs.get(url);
    return this.#traces.get(url);
  }

  forget(url: string): void {
    for (const each of [this.programs, this.#traces, this.#runs]) each.delete(url);
  }
}

interface Built {
  readonly listener: RequestListener;
  readonly isHttp2?: boolean;
}

/** `engines`: the caches around the program, from the outermost. */
export type Build = (stage: Stage, engines: readonly HTTPCacheMiddleware<never>[]) => Built | Promise<Built>;

const buildNode =
  (isHttp2: boolean): Build =>
  (stage, engines) => {
    const inner: RequestListener = (request, response) => {
      applyPatches(response, stage.programOf(request.url!).inner, "inner");
      stage.run(request.url!, response).catch(() => destroy(response));
    };
    const cached = engines.reduceRight(
      (listener, engine) => nodeCache(engine as never)(listener) as RequestListener,
      inner,
    );
    const listener: RequestListener = (request, response) => {
      applyPatches(response, stage.programOf(request.url!).outer, "outer");
      cached(request, response);
    };
    return { listener, isHttp2 };
  };

const buildExpress =
  (create: typeof express): Build =>
  (stage, engines) => {
    const app = create();
    // Error pages without a stack.
    app.set("env", "production");
    app.use((request, response, next) => {
      applyPatches(response, stage.programOf(request.url).outer, "outer");
      next();
    });
    for (const engine of engines) app.use(expressCache(engine as never));
    app.use((request, response, next) => {
      applyPatches(response, stage.programOf(request.url).inner, "inner");
      next();
    });
    app.use((request, response, next) => {
      // Express 4 does not look at what a handler returns.
      stage.run(request.url, response, next).catch(next);
    });
    app.use(
      (_error: Error, _request: express.Request, response: express.Response, next: express.NextFunction) => {
        if (response.headersSent) next(_error);
        else response.status(500).type("text").send("failed");
      },
    );
    return { listener: app };
  };

const buildFastify =
  (create: typeof Fastify): Build =>
  async (stage, engines) => {
    const app = create({ exposeHeadRoutes: false });
    app.addHook("onRequest", (request, reply, done) => {
      applyPatches(reply.raw, stage.programOf(request.url).outer, "outer");
      done();
    });
    for (const engine of engines) app.register(fastifyCache(engine as never));
    app.all("*", (request, reply) => {
      reply.hijack();
      applyPatches(reply.raw, stage.programOf(request.url).inner, "inner");
      stage.run(request.url, reply.raw).catch(() => reply.raw.destroy());
    });
    await app.ready();
    return { listener: app.routing };
  };

const buildKoa =
  (Application: typeof Koa): Build =>
  (stage, engines) => {
    const app = new Application();
    app.silent = true;
    app.use((context, next) => {
      applyPatches(context.res, stage.programOf(context.url).outer, "outer");
      return next();
    });
    for (const engine of engines) app.use(koaCache(engine as never));
    app.use(async (context) => {
      applyPatches(context.res, stage.programOf(context.url).inner, "inner");
      context.respond = false;
      await stage.run(context.url, context.res).catch(() => context.res.destroy());
    });
    return { listener: app.callback() };
  };

export const BUILDS: Readonly<Record<string, Build>> = {
  node: buildNode(false),
  "HTTP/2": buildNode(true),
  "Express 5": buildExpress(express),
  "Express 4": buildExpress(express4),
  "Fastify 5": buildFastify(Fastify),
  "Fastify 4": buildFastify(Fastify4),
  "Koa 3": buildKoa(Koa),
  "Koa 2": buildKoa(Koa2),
};
