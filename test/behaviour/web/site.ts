// A small site with outer middleware, mounted routes and an error page, built with each framework.
import type { RequestListener } from "node:http";
import { pipeline, Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { type Context, Hono } from "hono";
import Koa from "koa";
import { onTestFinished } from "vitest";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import type { HttpCacheOptions } from "../../../src/web/engine/options.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ask, type Got, listen } from "./subject.ts";

export type Framework = "express" | "fastify" | "koa" | "hono";
export const FRAMEWORKS: readonly Framework[] = ["express", "fastify", "koa", "hono"];

/** A route below `/site`. */
export interface Route {
  readonly path: string;
  /** What the HTTP cache of this route is told. */
  readonly options?: Partial<HttpCacheOptions<never>>;
  /** `url`: as the client sent it. May throw. */
  handle(url: string, header: (name: string) => string | undefined): string | Readable;
}

export interface Plan {
  readonly routes: readonly Route[];
  /** Runs before the cache. Text: its own answer. */
  readonly outer?: (set: (name: string, value: string) => void) => string | undefined;
  /** What the application makes of an error; default: what the framework does. */
  readonly failed?: (error: Error) => { readonly status: number; readonly body: string };
}

export interface Site {
  readonly cache: ReturnType<typeof memoryCache>["cache"];
  readonly clock: ReturnType<typeof memoryCache>["clock"];
  ask(path: string, headers?: Record<string, string>): Promise<Got>;
}

export async function site(framework: Framework, plan: Plan): Promise<Site> {
  const { cache, clock } = memoryCache();
  const engineOf = ({ options }: Route): never =>
    new HTTPCacheMiddleware<never>({ cache, ...options }, clock) as never;
  const port = await listen(await MAKERS[framework](plan, engineOf));
  return { cache, clock, ask: (path, headers = {}) => ask(port, path, { headers }) };
}

type Maker = (plan: Plan, engineOf: (route: Route) => never) => RequestListener | Promise<RequestListener>;

const MAKERS: Record<Framework, Maker> = {
  express: expressSite,
  fastify: fastifySite,
  koa: koaSite,
  hono: honoSite,
};

function expressSite({ routes, outer, failed }: Plan, engineOf: (route: Route) => never): RequestListener {
  const app = express();
  app.use((_request, response, next) => {
    const answer = outer?.((name, value) => response.set(name, value));
    if (answer === undefined) next();
    else response.send(answer);
  });
  const router = express.Router();
  for (const route of routes) {
    router.get(route.path, expressCache(engineOf(route)), (request, response) => {
      const answer = route.handle(request.originalUrl, (name) => request.get(name));
      if (typeof answer === "string") response.send(answer);
      else pipeline(answer, response, () => {});
    });
  }
  app.use("/site", router);
  app.use(((error, _request, response, _next) => {
    const { status, body } = failed?.(error) ?? { status: 500, body: "failed" };
    response.status(status).send(body);
  }) as express.ErrorRequestHandler);
  return app;
}

async function fastifySite(
  { routes, outer, failed }: Plan,
  engineOf: (route: Route) => never,
): Promise<RequestListener> {
  const app = Fastify();
  app.addHook("onRequest", async (_request, reply) => {
    const answer = outer?.((name, value) => void reply.header(name, value));
    if (answer !== undefined) await reply.send(answer);
  });
  if (failed !== undefined) {
    app.setErrorHandler((error, _request, reply) => {
      const { status, body } = failed(error as Error);
      reply.code(status).send(body);
    });
  }
  for (const route of routes) {
    app.register(
      async (scope) => {
        scope.register(fastifyCache(engineOf(route)));
        scope.get(route.path, async (request) =>
          route.handle(request.originalUrl, (name) => request.headers[name] as string | undefined),
        );
      },
      { prefix: "/site" },
    );
  }
  await app.ready();
  onTestFinished(() => app.close());
  return app.routing;
}

function koaSite({ routes, outer, failed }: Plan, engineOf: (route: Route) => never): RequestListener {
  const app = new Koa();
  app.silent = true;
  app.use(async (context, next) => {
    const answer = outer?.((name, value) => context.set(name, value));
    if (answer !== undefined) {
      context.body = answer;
      return;
    }
    try {
      await next();
    } catch (error) {
      if (failed === undefined) throw error;
      Object.assign(context, failed(error as Error));
    }
  });
  const caches = new Map(routes.map((route) => [route, koaCache<Koa.Context>(engineOf(route))]));
  app.use(async (context) => {
    context.url = context.url.replace(/^\/site/, "");
    const route = routes.find(({ path }) => path === context.path);
    if (route === undefined) return;
    await caches.get(route)!(context, async () => {
      context.body = route.handle(context.originalUrl, (name) => context.get(name) || undefined);
    });
  });
  return app.callback();
}

function honoSite({ routes, outer, failed }: Plan, engineOf: (route: Route) => never): RequestListener {
  const app = new Hono();
  app.use(async (context, next) => {
    const answer = outer?.((name, value) => context.header(name, value));
    return answer === undefined ? next() : context.text(answer);
  });
  const mounted = new Hono();
  for (const route of routes) {
    mounted.get(route.path, honoCache(engineOf(route), app), (context: Context) => {
      const { pathname, search } = new URL(context.req.url);
      const answer = route.handle(pathname + search, (name) => context.req.header(name));
      return context.body(typeof answer === "string" ? answer : (Readable.toWeb(answer) as ReadableStream));
    });
  }
  app.route("/site", mounted);
  app.onError((error, context) => {
    const { status, body } = failed?.(error) ?? { status: 500, body: "failed" };
    return context.body(body, status as 500);
  });
  return getRequestListener(app.fetch) as RequestListener;
}
