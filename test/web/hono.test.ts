// Hono specifics: its context, its two ways of setting fields, responses sent by other means.
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { setCookie } from "hono/cookie";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { requestId } from "hono/request-id";
import { describe, expect, test } from "vitest";
import { HTTPCacheMiddleware, httpCache } from "../../src/web/hono.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { ask, bridge, listen } from "../behaviour/web/subject.ts";

const serve = (app: { fetch: Hono["fetch"] }, options = {}): Promise<number> =>
  listen(getRequestListener(app.fetch, options) as Parameters<typeof listen>[0]);

test("fields that outer middleware sets before and after belong to this request", async () => {
  const app = new Hono();
  let requests = 0;
  app.use(cors({ origin: (origin) => origin }), requestId({ generator: () => `id ${++requests}` }));
  app.use(async (context, next) => {
    await next();
    context.header("x-after", `${requests}`);
  });
  app.use(httpCache({ cache: memoryCache().cache }));
  app.get("/", (context) => context.text("page", 200, { "x-inner": "1" }));
  const port = await serve(app);
  const seen = [];
  for (const origin of ["http://a.test", "http://a.test"]) {
    const { headers } = await ask(port, "/", { headers: { origin } });
    seen.push([
      headers["access-control-allow-origin"],
      headers["x-request-id"],
      headers["x-after"],
      headers["x-inner"],
      headers["cache-status"],
    ]);
  }
  expect(seen).toEqual([
    ["http://a.test", "id 1", "1", "1", "xcache; fwd=uri-miss; stored"],
    ["http://a.test", "id 2", "2", "1", "xcache; hit; ttl=60"],
  ]);
});

test("a success page in place of an error is not stored, an error status is", async () => {
  const app = new Hono();
  let calls = 0;
  app.use(httpCache({ cache: memoryCache().cache }));
  app.get("/broken", () => {
    throw new Error(`broken ${++calls}`);
  });
  app.get("/gone", () => {
    throw new HTTPException(410, { message: "gone" });
  });
  app.onError((error, context) =>
    error instanceof HTTPException ? error.getResponse() : context.text(error.message, 200),
  );
  const port = await serve(app);
  for (const body of ["broken 1", "broken 2"]) {
    const answer = await ask(port, "/broken");
    expect([answer.status, answer.body]).toEqual([200, body]);
    expect(answer.headers["cache-status"]).toBe("xcache; fwd=uri-miss; detail=error");
  }
  expect((await ask(port, "/gone")).status).toBe(410);
});

test("a response that a handler sent by other means is left alone", async () => {
  const app = new Hono<{ Bindings: { outgoing: ServerResponse } }>();
  let calls = 0;
  app.use(httpCache({ cache: memoryCache().cache }));
  app.get("/", (context) => {
    context.env.outgoing.end(`answer ${++calls}`);
    return RESPONSE_ALREADY_SENT;
  });
  const port = await serve(app as unknown as Hono);
  for (const body of ["answer 1", "answer 2"]) expect((await ask(port, "/")).body).toBe(body);
});

test("a body that was read for the key is available to the handler", async () => {
  const app = new Hono();
  let calls = 0;
  app.use(
    httpCache({
      cache: memoryCache().cache,
      methods: ["POST"],
      keyBuilder: async (context) => `search ${await context.req.text()}`,
    }),
  );
  app.post("/", async (context) => context.text(`${++calls} ${JSON.stringify(await context.req.json())}`));
  const port = await serve(app);
  const post = (body: string): ReturnType<typeof ask> =>
    ask(port, "/", { method: "POST", body, headers: { "x-original-url": "/admin" } });
  for (const [sent, answer] of [
    ['{"q":1}', '1 {"q":1}'],
    ['{"q":2}', '2 {"q":2}'],
    ['{"q":1}', '1 {"q":1}'],
  ] as const) {
    expect((await post(sent)).body).toBe(answer);
  }
});

test("without the application a stale response is refreshed before the answer", async () => {
  const { cache, clock } = memoryCache();
  const app = new Hono();
  let calls = 0;
  app.use(httpCache(new HTTPCacheMiddleware<Context>({ cache, ttl: 10, staleWhileRevalidate: 60 }, clock)));
  app.get("/", (context) => context.text(`answer ${++calls}`));
  const port = await serve(app);
  await ask(port, "/");
  await clock.advance(11_000);
  expect((await ask(port, "/")).body).toBe("answer 2");
  expect((await ask(port, "/")).headers["cache-status"]).toContain("hit");
});

test("the context has the client's request again after the handler", async () => {
  const app = new Hono();
  const seen: (string | undefined)[] = [];
  app.use(async (context, next) => {
    await next();
    seen.push(context.req.header("x-original-url"));
  });
  app.use(httpCache({ cache: memoryCache().cache }));
  app.get("/", (context) => {
    seen.push(context.req.header("x-original-url"));
    return context.text("page");
  });
  await ask(await serve(app), "/", { headers: { "x-original-url": "/admin" } });
  expect(seen).toEqual([undefined, "/admin"]);
});

test("it works with the runtime's own Request and Response", async () => {
  const app = new Hono();
  app.use(httpCache({ cache: memoryCache().cache }, app));
  app.get("/", (context) => context.text(`page for ${context.req.header("x-original-url")}`));
  const port = await serve(app, { overrideGlobalObjects: false });
  const headers = { "x-original-url": "/admin" };
  for (const said of ["stored", "hit"]) {
    const answer = await ask(port, "/", { headers });
    expect([answer.body, answer.headers["cache-status"]]).toEqual([
      "page for undefined",
      expect.stringContaining(said),
    ]);
  }
});

test("the types of Hono fit", () => {
  const { cache } = memoryCache();
  type Site = { Variables: { user: string } };
  const app = new Hono<Site>();
  app.use(httpCache<Site>({ cache, keyBuilder: ({ var: { user }, req }) => `${user} ${req.path}` }, app));
  app.get("/x", httpCache({ cache, ttl: 5, tags: (context) => [context.req.path] }), (context) =>
    context.text("x"),
  );
  expect(app.routes).toHaveLength(3);
});

describe.each([
  ["node-server", (app: Hono) => serve(app)],
  ["fetch", (app: Hono) => listen(bridge(async (request) => app.fetch(request)))],
] as const)("with outer middleware that acts after next(), served by %s", (_, start) => {
  const site = (outer: MiddlewareHandler, ...between: MiddlewareHandler[]) => {
    const app = new Hono();
    let calls = 0;
    app.onError((_error, context) => context.text("failed", 500));
    app.use(outer, ...between);
    app.use(httpCache({ cache: memoryCache().cache }, app));
    app.get("/", (context) => context.text(`token ${++calls}`));
    app.get("/stream", (context) =>
      context.body(Readable.toWeb(Readable.from([Buffer.from(`token ${++calls}`)])) as ReadableStream),
    );
    return start(app);
  };

  test.each([["/"], ["/stream"]])("a cookie keeps %s from being stored", async (path) => {
    let visitors = 0;
    const port = await site(
      async (context, next) => {
        await next();
        await new Promise((resolve) => setTimeout(resolve, 5));
        setCookie(context, "session", `${++visitors}`);
      },
      // Reads the body before the cookie is set.
      compress({ threshold: 0 }),
    );
    const visit = () => ask(port, path, { headers: { "accept-encoding": "gzip" } });
    const answers = [await visit(), await visit(), ...(await Promise.all([visit(), visit()]))];
    expect(answers.map(({ bytes }) => gunzipSync(bytes).toString()).sort()).toEqual(
      [1, 2, 3, 4].map((call) => `token ${call}`),
    );
    expect(new Set(answers.map(({ headers }) => headers["set-cookie"]?.[0])).size).toBe(4);
  });

  test("an error keeps the response from being stored", async () => {
    let isBroken = true;
    const port = await site(async (_context, next) => {
      await next();
      if (isBroken) throw new Error("broken");
    });
    expect((await ask(port, "/")).status).toBe(500);
    isBroken = false;
    expect([(await ask(port, "/")).body, (await ask(port, "/")).body]).toEqual(["token 2", "token 2"]);
  });
});
