// Two caches on one request path: the outer one decides, and a request never waits for itself.
import { setImmediate as turn } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, onTestFinished, test } from "vitest";
import type { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { HTTPCacheMiddleware as Engine, httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as fetchCache } from "../../../src/web/fetch.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { memoryCache } from "../../behaviour/cache/memory-cache.ts";
import { ask, bridge, listen } from "../../behaviour/web/subject.ts";
import { until } from "../../support/until.ts";

type Serve = (outer: never, inner: never, body: () => string) => Promise<number>;

/** What stands between the two takes its time. */
const SERVERS: Record<string, Serve> = {
  express(outer, inner, body) {
    const app = express();
    app.use(expressCache(outer));
    app.use((_request, _response, next) => void setImmediate(next));
    app.get("/", expressCache(inner), (_request, response) => void response.send(body()));
    return listen(app);
  },
  async fastify(outer, inner, body) {
    const app = Fastify();
    app.register(fastifyCache(outer));
    app.addHook("onRequest", async () => turn());
    app.register(async (scope) => {
      scope.register(fastifyCache(inner));
      scope.get("/", async () => body());
    });
    await app.ready();
    onTestFinished(() => app.close());
    return listen(app.routing);
  },
  koa(outer, inner, body) {
    const app = new Koa();
    app.use(koaCache(outer));
    app.use(async (_context, next) => {
      await turn();
      await next();
    });
    app.use(koaCache(inner));
    app.use((context) => {
      context.body = body();
    });
    return listen(app.callback());
  },
  "hono without a server of its own": (outer, inner, body) => {
    const app = honoApp(outer, inner, body);
    return listen(bridge(async (request) => app.fetch(request)));
  },
  node(outer, inner, body) {
    const listener = nodeCache(inner)((_request, response) => response.end(body()));
    return listen(
      nodeCache(outer)((request, response) => void setImmediate(() => listener(request, response))) as never,
    );
  },
  fetch(outer, inner, body) {
    const handler = fetchCache(inner)(() => new Response(body()));
    return listen(bridge(fetchCache(outer)((request) => turn().then(() => handler(request)))));
  },
  // Its server replaces the global Request and Response, so it comes last.
  hono: (outer, inner, body) => listen(getRequestListener(honoApp(outer, inner, body).fetch) as never),
};

function honoApp(outer: never, inner: never, body: () => string): Hono {
  const app = new Hono();
  app.use(honoCache(outer, app));
  app.use(async (_context, next) => {
    await turn();
    await next();
  });
  app.get("/", honoCache(inner, app), (context) => context.text(body()));
  return app;
}

describe.each(Object.entries(SERVERS))("on %s", (_, serve) => {
  test("an inner cache passes a request through while the outer one fills the same entry", async () => {
    const { cache, clock } = memoryCache();
    const engine = (ttl: number): never =>
      new Engine({ cache, ttl, staleWhileRevalidate: 20 }, clock) as HTTPCacheMiddleware as never;
    let calls = 0;
    const port = await serve(engine(10), engine(5), () => `answer ${++calls}`);
    // A field that the handler is not shown: it gets another request than the client's where that cannot be changed.
    const headers = { "x-host": "a.test" };
    const first = await ask(port, "/", { headers });
    expect([first.body, first.headers["cache-control"]]).toEqual(["answer 1", "max-age=10"]);
    expect(first.headers["cache-status"]).toBe(
      "xcache; fwd=bypass; detail=nested, xcache; fwd=uri-miss; stored",
    );
    expect((await ask(port, "/")).headers["cache-status"]).toBe("xcache; hit; ttl=10");
    await clock.advance(15_000);
    expect((await ask(port, "/", { headers })).body).toBe("answer 1");
    await until(async () => (await ask(port, "/")).body === "answer 2", { what: "the refreshed response" });
    expect(calls).toBe(2);
  });

  test("two separate caches are both filled", async () => {
    const { cache, clock } = memoryCache();
    const engine = (name: string, ttl: number): never =>
      new Engine({ cache: cache.namespace(name), ttl }, clock) as HTTPCacheMiddleware as never;
    let calls = 0;
    const port = await serve(engine("outer", 5), engine("inner", 60), () => `answer ${++calls}`);
    await ask(port, "/");
    await clock.advance(6_000);
    expect((await ask(port, "/")).body).toBe("answer 1");
    expect(calls).toBe(1);
  });

  test("two separate caches are both refreshed", async () => {
    const { cache, clock } = memoryCache();
    const engine = (name: string): never =>
      new Engine(
        { cache: cache.namespace(name), ttl: 5, staleWhileRevalidate: 100 },
        clock,
      ) as HTTPCacheMiddleware as never;
    let calls = 0;
    const port = await serve(engine("outer"), engine("inner"), () => `answer ${++calls}`);
    // A field that the handler is not shown.
    const headers = { "x-host": "a.test" };
    await ask(port, "/", { headers });
    await clock.advance(6_000);
    expect((await ask(port, "/", { headers })).body).toBe("answer 1");
    // The outer one may get the stale response of the inner one first.
    const isRefreshed = async (): Promise<boolean> => {
      await clock.advance(1_000);
      return (await ask(port, "/")).body !== "answer 1";
    };
    await until(isRefreshed, { what: "the refreshed response" });
  });
});
