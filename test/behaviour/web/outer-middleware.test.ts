// Middleware outside of the cache that adds fields and cookies to a response on its way out, for some requests only: it does so
// on every response, stored or not, and what it adds for one client is never for another.
import type { RequestListener } from "node:http";
import fastifyCookie from "@fastify/cookie";
import fastifySession from "@fastify/session";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import express4 from "express-4";
import session from "express-session";
import Fastify, { type FastifyInstance } from "fastify";
import Fastify4 from "fastify-4";
import { Hono, type MiddlewareHandler } from "hono";
import { setCookie } from "hono/cookie";
import Koa from "koa";
import Koa2 from "koa-2";
import koaSession from "koa-session";
import onHeaders from "on-headers";
import { describe, expect, onTestFinished, test } from "vitest";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { until } from "../../support/until.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ask, type Got, listen } from "./subject.ts";

const secret = "a secret of the test, which must be long";

/** The request field that makes outer middleware act. It is neither a credential nor part of the key. */
const VISIT = "x-visit";

/** What the handler answers next. */
interface Page {
  calls: number;
  isFailing: boolean;
}

type Serve = (page: Page, engine: HTTPCacheMiddleware<never> | undefined) => Promise<RequestListener>;

interface Way {
  readonly serve: Serve;
  /** Whether it adds a cookie, so that the response it is added to is not stored. */
  readonly setsCookie: boolean;
}

const HANDLERS_ETAG = '"of the handler"';

/** The handler: counts its calls, fails if it should, and answers a condition. */
function answer(page: Page, condition: string | undefined): { status: number; body: string } {
  page.calls++;
  if (page.isFailing) return { status: 503, body: "failed" };
  if (condition === HANDLERS_ETAG) return { status: 304, body: "" };
  return { status: 200, body: "the page" };
}

type ExpressOuter = (visit: string, response: express.Response, request: express.Request) => void;

const onExpress =
  (create: typeof express, act: ExpressOuter, ...before: express.RequestHandler[]): Serve =>
  async (page, engine) => {
    const app = create();
    if (before.length > 0) app.use(...before);
    app.use((request, response, next) => {
      const visit = request.get(VISIT);
      if (visit !== undefined) act(visit, response, request);
      next();
    });
    if (engine !== undefined) app.use(expressCache(engine as never));
    app.get("/", (request, response) => {
      const { status, body } = answer(page, request.get("if-none-match"));
      response.status(status).set({ link: "</inner>", etag: HANDLERS_ETAG }).type("text").send(body);
    });
    return app;
  };

type KoaOuter = (visit: string, context: Koa.Context) => void;

const onKoa =
  (Application: typeof Koa, act: KoaOuter, before: (app: Koa) => Koa.Middleware[] = () => []): Serve =>
  async (page, engine) => {
    const app = new Application();
    app.silent = true;
    app.keys = [secret];
    for (const each of before(app)) app.use(each);
    app.use(async (context, next) => {
      await next();
      const visit = context.get(VISIT);
      if (visit !== "") act(visit, context);
    });
    if (engine !== undefined) app.use(koaCache(engine as never));
    app.use((context) => {
      const { status, body } = answer(page, context.get("if-none-match"));
      context.status = status;
      context.set({ link: "</inner>", etag: HANDLERS_ETAG });
      if (status !== 304) context.body = body;
    });
    return app.callback();
  };

type FastifyOuter = (app: FastifyInstance) => void;

const onFastify =
  (create: typeof Fastify, outer: FastifyOuter): Serve =>
  async (page, engine) => {
    const app = create();
    outer(app);
    app.register(async (scope) => {
      if (engine !== undefined) scope.register(fastifyCache(engine as never));
      scope.get("/", async (request, reply) => {
        const { status, body } = answer(page, request.headers["if-none-match"]);
        reply.code(status).headers({ link: "</inner>", etag: HANDLERS_ETAG }).type("text/plain");
        return reply.send(body);
      });
    });
    await app.ready();
    onTestFinished(() => app.close());
    return app.routing;
  };

type HonoOuter = MiddlewareHandler;

const onHono =
  (outer: HonoOuter): Serve =>
  async (page, engine) => {
    const app = new Hono();
    app.use(outer);
    if (engine !== undefined) app.use(honoCache(engine as never, app));
    app.get("/", (context) => {
      const { status, body } = answer(page, context.req.header("if-none-match"));
      const headers = { link: "</inner>", etag: HANDLERS_ETAG, "content-type": "text/plain" };
      return context.newResponse(status === 304 ? null : body, status as 200, headers);
    });
    return getRequestListener(app.fetch) as RequestListener;
  };

const sends = (
  act: (visit: string, reply: { header(name: string, value: string): unknown }) => void,
): FastifyOuter => {
  return (app) =>
    app.addHook("onSend", (request, reply, payload, done) => {
      const visit = request.headers[VISIT];
      if (typeof visit === "string") act(visit, reply);
      done(null, payload);
    });
};

interface Kept {
  visit?: string;
}

const withSession = (): express.RequestHandler =>
  session({ secret, resave: false, saveUninitialized: false });

function expressWays(create: typeof express): Record<string, Way> {
  return {
    "on-headers and a field": {
      setsCookie: false,
      serve: onExpress(create, (visit, response) =>
        onHeaders(response, () => void response.set("x-late", visit)),
      ),
    },
    "on-headers and a line": {
      setsCookie: false,
      serve: onExpress(create, (visit, response) =>
        onHeaders(response, () => void response.append("link", `</${visit}>`)),
      ),
    },
    "on-headers and a cookie": {
      setsCookie: true,
      serve: onExpress(create, (visit, response) =>
        onHeaders(response, () => void response.cookie("visit", visit)),
      ),
    },
    "express-session": {
      setsCookie: true,
      serve: onExpress(
        create,
        (visit, _response, request) => {
          (request as unknown as { session: Kept }).session.visit = visit;
        },
        withSession(),
      ),
    },
  };
}

function koaWays(Application: typeof Koa): Record<string, Way> {
  return {
    "ctx.set": {
      setsCookie: false,
      serve: onKoa(Application, (visit, context) => context.set("x-late", visit)),
    },
    "ctx.append": {
      setsCookie: false,
      serve: onKoa(Application, (visit, context) => context.append("link", `</${visit}>`)),
    },
    "ctx.cookies.set": {
      setsCookie: true,
      serve: onKoa(Application, (visit, context) => void context.cookies.set("visit", visit)),
    },
    "koa-session": {
      setsCookie: true,
      serve: onKoa(
        Application,
        (visit, context) => {
          (context.session as Kept).visit = visit;
        },
        (app) => [koaSession({}, app)],
      ),
    },
  };
}

function fastifyWays(create: typeof Fastify): Record<string, Way> {
  return {
    "reply.header": {
      setsCookie: false,
      serve: onFastify(
        create,
        sends((visit, reply) => void reply.header("x-late", visit)),
      ),
    },
    "a cookie line": {
      setsCookie: true,
      serve: onFastify(
        create,
        sends((visit, reply) => void reply.header("set-cookie", `visit=${visit}`)),
      ),
    },
    "an async hook": {
      setsCookie: false,
      serve: onFastify(create, (app) => {
        app.addHook("onSend", async (request, reply) => {
          const visit = request.headers[VISIT];
          if (visit !== undefined) reply.header("x-late", visit);
        });
      }),
    },
  };
}

const FASTIFY_5_WAYS: Record<string, Way> = {
  "@fastify/session": {
    setsCookie: true,
    serve: onFastify(Fastify, (app) => {
      app.register(fastifyCookie);
      app.register(fastifySession, { secret, cookie: { secure: false }, saveUninitialized: false });
      app.addHook("onRequest", async (request) => {
        const visit = request.headers[VISIT];
        if (visit !== undefined) (request as unknown as { session: Kept }).session.visit = String(visit);
      });
    }),
  },
};

const HONO_WAYS: Record<string, Way> = {
  "context.header": {
    setsCookie: false,
    serve: onHono(async (context, next) => {
      await next();
      const visit = context.req.header(VISIT);
      if (visit !== undefined) context.header("x-late", visit);
    }),
  },
  "a line": {
    setsCookie: false,
    serve: onHono(async (context, next) => {
      await next();
      const visit = context.req.header(VISIT);
      if (visit !== undefined) context.res.headers.append("link", `</${visit}>`);
    }),
  },
  setCookie: {
    setsCookie: true,
    serve: onHono(async (context, next) => {
      await next();
      const visit = context.req.header(VISIT);
      if (visit !== undefined) setCookie(context, "visit", visit);
    }),
  },
  "a new Response": {
    setsCookie: false,
    serve: onHono(async (context, next) => {
      await next();
      const visit = context.req.header(VISIT);
      if (visit === undefined) return;
      const headers = new Headers(context.res.headers);
      headers.set("x-late", visit);
      const { status, body } = context.res;
      context.res = undefined;
      context.res = new Response(body, { status, headers });
    }),
  },
};

/** The server of Hono replaces the global Request and Response, so it comes last. */
const FRAMEWORKS: Record<string, Record<string, Way>> = {
  "Express 5": expressWays(express),
  "Express 4": expressWays(express4),
  "Koa 3": koaWays(Koa),
  "Koa 2": koaWays(Koa2),
  "Fastify 5": { ...fastifyWays(Fastify), ...FASTIFY_5_WAYS },
  "Fastify 4": fastifyWays(Fastify4),
  Hono: HONO_WAYS,
};

const WAYS = Object.entries(FRAMEWORKS).flatMap(([framework, ways]) =>
  Object.entries(ways).map(([name, way]) => [`${framework}: ${name}`, way] as const),
);

/** What outer middleware made of a response. Ids of sessions are random. */
function late({ headers }: Got): [unknown, unknown, unknown] {
  const cookies = (headers["set-cookie"] ?? []).map((line) => line.split("=")[0]);
  return [headers["x-late"], headers.link, cookies.sort()];
}

const statusOf = ({ headers }: Got): string => String(headers["cache-status"]);

describe.each(WAYS)("%s, added after the handler", (_, { serve, setsCookie }) => {
  async function open() {
    const { cache, clock } = memoryCache();
    const options = { cache, ttl: 10, staleWhileRevalidate: 20, staleIfError: 600 };
    const engine = new HTTPCacheMiddleware<never>(options, clock);
    const [page, bare] = [
      { calls: 0, isFailing: false },
      { calls: 0, isFailing: false },
    ];
    const [port, barePort] = [
      await listen(await serve(page, engine)),
      await listen(await serve(bare, undefined)),
    ];
    const visited = late(await ask(barePort, "/", { headers: { [VISIT]: "1" } }));
    const plain = late(await ask(barePort, "/"));
    expect(visited).not.toEqual(plain);
    const get = (headers: Record<string, string> = {}) => ask(port, "/", { headers });
    return { clock, page, visited, plain, get, port };
  }

  test("is on the response that fills the cache, and not stored with it", async () => {
    const { get, visited, plain, page } = await open();
    const first = await get({ [VISIT]: "1" });
    expect([first.status, first.body, late(first)]).toEqual([200, "the page", visited]);
    const second = await get();
    expect([second.body, late(second)]).toEqual(["the page", plain]);
    expect(page.calls).toBe(setsCookie ? 2 : 1);
  });

  test("is on a hit, on a HEAD and on a 304, and not on the next", async () => {
    const { get, visited, plain, page, port } = await open();
    const { headers } = await get();
    for (let time = 0; time < 2; time++) {
      const hit = await get({ [VISIT]: "1" });
      expect([hit.status, hit.body, late(hit)]).toEqual([200, "the page", visited]);
      const head = await ask(port, "/", { method: "HEAD", headers: { [VISIT]: "1" } });
      expect([head.status, head.body, head.headers["content-length"], late(head)]).toEqual([
        200,
        "",
        "8",
        visited,
      ]);
      const condition = { "if-none-match": String(headers.etag) };
      const held = await get({ ...condition, [VISIT]: "1" });
      expect([held.status, held.body, held.headers["x-late"]]).toEqual([304, "", visited[0]]);
      expect(held.headers["set-cookie"] !== undefined).toBe(setsCookie);
      expect(late(await get())).toEqual(plain);
      const plainHeld = await get(condition);
      expect([plainHeld.status, plainHeld.headers["x-late"], plainHeld.headers["set-cookie"]]).toEqual([
        304,
        undefined,
        undefined,
      ]);
    }
    expect(page.calls).toBe(1);
  });

  test("is on a stale response, whose refresh does not store it", async () => {
    const { get, visited, plain, page, clock } = await open();
    await get();
    await clock.advance(11_000);
    const stale = await get({ [VISIT]: "1" });
    expect([stale.status, stale.body, late(stale)]).toEqual([200, "the page", visited]);
    expect(statusOf(stale)).toContain("hit");
    await until(() => page.calls === 2, { what: "the refresh" });
    // After the time for which a refresh that may not be stored is not repeated.
    await clock.advance(1_000);
    expect(late(await get())).toEqual(plain);
  });

  test("is on a response that the handler confirmed, and on one in place of an error", async () => {
    const { get, visited, plain, page, clock } = await open();
    await get();
    await clock.advance(100_000);
    const confirmed = await get({ [VISIT]: "1" });
    expect([confirmed.status, confirmed.body, late(confirmed)]).toEqual([200, "the page", visited]);
    expect(late(await get())).toEqual(plain);
    page.isFailing = true;
    await clock.advance(100_000);
    const covered = await get({ [VISIT]: "1" });
    expect([covered.status, covered.body, late(covered)]).toEqual([200, "the page", visited]);
    const next = await get();
    expect([next.status, late(next)]).toEqual([200, plain]);
  });
});
