// Real middleware of Fastify, Koa and Hono, inside and outside of the cache: what each user sees is what the same application
// shows without the cache.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fastifyCompress from "@fastify/compress";
import fastifyCookie from "@fastify/cookie";
import fastifyHelmet from "@fastify/helmet";
import fastifyRateLimit from "@fastify/rate-limit";
import fastifySession from "@fastify/session";
import fastifyStatic from "@fastify/static";
import { getRequestListener } from "@hono/node-server";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import { csrf } from "hono/csrf";
import { etag } from "hono/etag";
import { secureHeaders } from "hono/secure-headers";
import { streamText } from "hono/streaming";
import { timeout } from "hono/timeout";
import Koa from "koa";
import Koa2 from "koa-2";
import koaBodyParser from "koa-bodyparser";
import koaCompress from "koa-compress";
import koaSession from "koa-session";
import koaStatic from "koa-static";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { listen } from "./subject.ts";
import { expectHit, type Got, type More, type Place, visits } from "./visits.ts";

const secret = "a secret of the test, which must be long";

/** What the site needs of a framework to know its user. */
interface Visitor {
  readonly session?: { user?: string | undefined; token?: string } | null | undefined;
  readonly cookie: string | undefined;
  setCookie(line: string): void;
}

/** A site that greets its user and counts posts, for any framework. Undefined: not found. */
function site(): (
  method: string,
  url: string,
  visitor: Visitor,
) => { status?: number; body: string } | undefined {
  let posts = 0;
  const pages: Record<
    string,
    (visitor: Visitor, query: URLSearchParams) => { status?: number; body: string }
  > = {
    "GET /page": ({ session, cookie }) => ({ body: `page of ${session?.user ?? cookie ?? "nobody"}` }),
    "GET /form": ({ session }) => {
      if (session) session.token ??= randomUUID();
      return { body: `token=${session?.token ?? ""}` };
    },
    "GET /posts": () => ({ body: `{"posts":${posts}}` }),
    "POST /posts": () => ({ status: 201, body: `{"posts":${++posts}}` }),
    "POST /login": ({ session, setCookie }, query) => {
      const name = query.get("user")!;
      if (session) session.user = name;
      else setCookie(`user=${name}; Path=/`);
      return { body: `hello ${name}` };
    },
    "POST /logout": ({ session, setCookie }) => {
      if (session) session.user = undefined;
      else setCookie("user=; Path=/; Max-Age=0");
      return { body: "bye" };
    },
  };
  return (method, url, visitor) => {
    const { pathname, searchParams } = new URL(url, "http://site.test");
    return pages[`${method} ${pathname}`]?.(visitor, searchParams);
  };
}

const FILE = "0123456789";
const MAX_AGE_MS = 60_000;

const userIn = (cookie: string | undefined): string | undefined =>
  /(?:^|; )user=(\w+)/.exec(cookie ?? "")?.[1];

function folderWithFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "xcache-static-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "file.txt"), FILE);
  return folder;
}

/** `isReached`: whether the request for a file reaches the cache. */
const asksForFile =
  (isReached: (place: Place) => boolean): More =>
  async (user, _other, place) => {
    const expectCached = (got: Got): void => {
      if (isReached(place)) expectHit(got, place);
      else expect(got.headers["cache-status"]).toBeUndefined();
    };
    const first = await user.getAnonymously("/file.txt");
    const held = await user.getAnonymously("/file.txt");
    expect([first.body, held.body]).toEqual([FILE, FILE]);
    expectCached(held);
    // An ETag that only the cache has is not for the comparison.
    if (held.headers["accept-ranges"] === undefined) return;
    const again = await user.getAnonymously("/file.txt", { "if-none-match": String(held.headers.etag) });
    expect([again.status, again.body]).toEqual([304, ""]);
    expectCached(again);
  };

const asksForEncodings: More = async (user, _other, place) => {
  for (const path of ["/posts", "/page"]) {
    for (const visit of [1, 2, 3]) {
      // Each of them is the first for one of the pages.
      for (const encoding of path === "/page" ? ["gzip", "identity"] : ["identity", "gzip"]) {
        const got = await user.getAnonymously(path, { "accept-encoding": encoding });
        expect([got.headers["content-encoding"], got.body]).toEqual([
          encoding === "gzip" ? "gzip" : undefined,
          path === "/page" ? "page of nobody" : '{"posts":1}',
        ]);
        if (visit > 1) expectHit(got, place);
      }
    }
  }
};

interface Row {
  readonly serve: (place: Place) => RequestListener | Promise<RequestListener>;
  readonly more?: More;
}

const options = () => ({ cache: memoryCache().cache, ttl: 300 });

function onFastify(plugins: (app: FastifyInstance) => void, more?: More): Row {
  const serve = async (place: Place): Promise<RequestListener> => {
    const app = Fastify({ exposeHeadRoutes: false });
    if (place === "inside") app.register(fastifyCache(options()));
    plugins(app);
    if (place === "outside") app.register(fastifyCache(options()));
    const answer = site();
    app.after(() => {
      app.route({
        method: ["GET", "POST"],
        url: "/:page",
        handler: (request: FastifyRequest, reply) => {
          const found = answer(request.method, request.url, {
            session: (request as { session?: Visitor["session"] }).session,
            cookie: userIn(request.headers.cookie),
            setCookie: (line) => void reply.header("set-cookie", line),
          });
          if (found === undefined) reply.callNotFound();
          else
            reply
              .code(found.status ?? 200)
              .type("text/plain")
              .send(found.body);
        },
      });
    });
    await app.ready();
    onTestFinished(() => app.close());
    return app.routing;
  };
  return more === undefined ? { serve } : { serve, more };
}

function onKoa(middleware: (app: Koa) => Koa.Middleware[], more?: More, Application = Koa): Row {
  const serve = (place: Place): RequestListener => {
    const app = new Application();
    app.silent = true;
    app.keys = [secret];
    if (place === "inside") app.use(koaCache(options()));
    for (const each of middleware(app)) app.use(each);
    if (place === "outside") app.use(koaCache(options()));
    const answer = site();
    app.use((context) => {
      const found = answer(context.method, context.url, {
        session: context.session as Visitor["session"],
        cookie: userIn(context.get("cookie")),
        setCookie: (line) => context.append("set-cookie", line),
      });
      if (found === undefined) return;
      context.status = found.status ?? 200;
      context.body = found.body;
    });
    return app.callback();
  };
  return more === undefined ? { serve } : { serve, more };
}

function onHono(middleware: () => MiddlewareHandler[], more?: More): Row {
  const serve = (place: Place): RequestListener => {
    const app = new Hono();
    if (place === "inside") app.use(honoCache(options(), app));
    for (const each of middleware()) app.use(each);
    if (place === "outside") app.use(honoCache(options(), app));
    const answer = site();
    app.get("/streamed", (context) =>
      streamText(context, async (stream) => {
        for (let line = 0; line < 3; line++) await stream.writeln(`line ${line}`);
      }),
    );
    app.all("/:page", (context) => {
      const found = answer(context.req.method, context.req.url, {
        cookie: getCookie(context, "user"),
        setCookie: (line) => {
          const name = userIn(line);
          if (name === undefined) deleteCookie(context, "user");
          else setCookie(context, "user", name);
        },
      });
      return found === undefined
        ? context.notFound()
        : context.text(found.body, (found.status ?? 200) as 200);
    });
    return getRequestListener(app.fetch) as RequestListener;
  };
  return more === undefined ? { serve } : { serve, more };
}

/** The server of Hono replaces the global Request and Response, so it comes last. */
const ROWS: Record<string, Row> = {
  "@fastify/cookie": onFastify((app) => void app.register(fastifyCookie, { secret })),
  "@fastify/session": onFastify((app) => {
    app.register(fastifyCookie);
    app.register(fastifySession, { secret, cookie: { secure: false } });
  }),
  "@fastify/compress": onFastify(
    (app) => void app.register(fastifyCompress, { threshold: 0 }),
    asksForEncodings,
  ),
  "@fastify/rate-limit": onFastify((app) => void app.register(fastifyRateLimit, { max: 1_000 })),
  "@fastify/static": onFastify(
    (app) =>
      void app.register(fastifyStatic, {
        root: folderWithFile(),
        prefix: "/",
        wildcard: false,
        maxAge: MAX_AGE_MS,
      }),
    // Files have routes, which are behind the cache wherever they are registered.
    asksForFile(() => true),
  ),
  "@fastify/helmet": onFastify((app) => void app.register(fastifyHelmet)),
  "koa-session": onKoa((app) => [koaSession({ renew: true }, app)]),
  "koa-compress": onKoa(() => [koaCompress({ threshold: 0, br: false })], asksForEncodings),
  "koa-session on Koa 2": onKoa((app) => [koaSession({ renew: true }, app)], undefined, Koa2),
  "koa-compress on Koa 2": onKoa(() => [koaCompress({ threshold: 0, br: false })], asksForEncodings, Koa2),
  "koa-bodyparser": onKoa(
    () => [koaBodyParser()],
    (user) => user.post("/posts", { "content-type": "application/json" }, '{"a":1}'),
  ),
  "koa-static": onKoa(
    () => [koaStatic(folderWithFile(), { maxage: MAX_AGE_MS })],
    asksForFile((place) => place === "inside"),
  ),
  "hono/cookie and streaming": onHono(
    () => [],
    async (user, _other, place) => {
      for (const time of [1, 2]) {
        const got = await user.getAnonymously("/streamed");
        expect(got.body).toBe("line 0\nline 1\nline 2\n");
        if (time === 2) expectHit(got, place);
      }
    },
  ),
  "hono/etag": onHono(
    () => [etag()],
    async (user, _other, place) => {
      const { headers } = await user.getAnonymously("/posts");
      for (const condition of [String(headers.etag), "*"]) {
        const held = await user.getAnonymously("/posts", { "if-none-match": condition });
        expect([held.status, held.body]).toEqual([304, ""]);
        expectHit(held, place);
      }
    },
  ),
  "hono/compress": onHono(() => [compress({ threshold: 0 })], asksForEncodings),
  "hono/csrf": onHono(
    () => [csrf()],
    async (user) => {
      const { status } = await user.post("/posts", { origin: "http://evil.test" });
      expect(status).toBe(403);
    },
  ),
  "hono/secure-headers": onHono(() => [secureHeaders()]),
  "hono/timeout": onHono(() => [timeout(10_000)]),
};

describe.each(Object.entries(ROWS))("%s", (_, { serve, more }) => {
  test("shows every user the same outside of the cache, inside of it and without it", async () => {
    const visitsIn = async (place: Place) => visits(await listen(await serve(place)), place, more);
    const expected = await visitsIn("without the cache");
    expect(await visitsIn("outside"), "outside").toEqual(expected);
    expect(await visitsIn("inside"), "inside").toEqual(expected);
  });
});
