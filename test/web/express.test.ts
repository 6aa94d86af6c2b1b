// What is special about Express: mounted routers, its own ETag, headers of middlewares further out.
import type { RequestListener } from "node:http";
import express from "express";
import { expect, test } from "vitest";
import { HTTPCacheMiddleware, httpCache } from "../../src/web/express.ts";
import { until } from "../support/until.ts";
import { memoryCache } from "../xcache/memory-cache.ts";
import { ask, listen } from "./subject.ts";

test("the key is the whole URL, wherever the middleware is mounted", async () => {
  const { cache } = memoryCache();
  const app = express();
  for (const place of ["/a", "/b"]) {
    const router = express.Router();
    router.use(httpCache({ cache }));
    router.get("/page", (request, response) => void response.send(request.originalUrl));
    app.use(place, router);
  }
  const port = await listen(app);
  for (const path of ["/a/page", "/b/page", "/a/page?x=1", "/a/page"]) {
    expect((await ask(port, path)).body).toBe(path);
  }
  expect((await ask(port, "/b/page")).headers["cache-status"]).toContain("hit");
});

test("the ETag that Express makes is kept, and its 304 freshens what is stored", async () => {
  const { cache, clock } = memoryCache();
  let calls = 0;
  const app = express();
  app.use(httpCache(new HTTPCacheMiddleware({ cache, ttl: 10 }, clock)));
  app.get("/", (_request, response) => {
    calls++;
    response.json({ a: 1 });
  });
  const port = await listen(app);
  const first = await ask(port, "/");
  expect(first.headers.etag).toMatch(/^W\/"7-/);
  await clock.advance(11_000);
  const second = await ask(port, "/");
  expect([second.status, second.body, second.headers.etag]).toEqual([200, '{"a":1}', first.headers.etag]);
  expect(second.headers["cache-status"]).toContain("fwd-status=304");
  expect(second.headers["content-type"]).toBe("application/json; charset=utf-8");
  expect((await ask(port, "/")).headers["cache-status"]).toContain("hit");
  expect(calls).toBe(2);
});

test("fields set by a middleware further out are of this request, not of the stored one", async () => {
  const { cache } = memoryCache();
  const app = express();
  let requests = 0;
  app.use((request, response, next) => {
    response.set("x-outer", `${++requests}`);
    response.set("access-control-allow-origin", request.get("origin") ?? "none");
    next();
  });
  app.use(httpCache({ cache }));
  app.get("/", (_request, response) => void response.set("x-inner", "1").send("page"));
  const port = await listen(app);
  await ask(port, "/", { headers: { origin: "http://a.test" } });
  const { headers } = await ask(port, "/", { headers: { origin: "http://b.test" } });
  expect(headers["cache-status"]).toContain("hit");
  expect([headers["x-outer"], headers["access-control-allow-origin"], headers["x-inner"]]).toEqual([
    "2",
    "http://b.test",
    "1",
  ]);
});

test("what a middleware further out forbids is not stored", async () => {
  const { cache } = memoryCache();
  const app = express();
  let calls = 0;
  app.use((_request, response, next) => {
    response.set("cache-control", "no-store");
    next();
  });
  app.use(httpCache({ cache }));
  app.get("/", (_request, response) => void response.send(`answer ${++calls}`));
  const port = await listen(app);
  await ask(port, "/");
  expect((await ask(port, "/")).body).toBe("answer 2");
});

test("errors of handlers reach the error handler of the application, and are not stored", async () => {
  const { cache } = memoryCache();
  const app = express();
  app.use(httpCache({ cache }));
  app.get("/", async () => {
    throw new Error("broken");
  });
  app.use(((error, _request, response, _next) => {
    response.status(500).send(`handled ${error.message}`);
  }) as express.ErrorRequestHandler);
  const port = await listen(app);
  for (let time = 0; time < 2; time++) {
    const answer = await ask(port, "/");
    expect([answer.status, answer.body]).toEqual([500, "handled broken"]);
  }
  expect((await ask(port, "/missing")).status).toBe(404);
});

test("the request behind a stale answer goes through the application once more, to nobody", async () => {
  const { cache, clock } = memoryCache();
  const app = express();
  const seen: string[] = [];
  let calls = 0;
  let isShut = false;
  app.use((request, response, next) => {
    seen.push(request.originalUrl);
    if (isShut && seen.length > 3) response.status(200).send("somebody else's answer");
    else next();
  });
  const site = express();
  site.use(httpCache(new HTTPCacheMiddleware({ cache, ttl: 10, staleWhileRevalidate: 60 }, clock)));
  site.get("/page", (request, response) => void response.send(`${request.protocol} ${++calls}`));
  app.use("/site", site);
  const port = await listen(app);
  expect((await ask(port, "/site/page")).body).toBe("http 1");
  await clock.advance(11_000);
  expect((await ask(port, "/site/page")).body).toBe("http 1");
  await until(() => calls === 2, { what: "the second call" });
  expect(seen).toEqual(["/site/page", "/site/page", "/site/page"]);
  isShut = false;
  await until(async () => (await ask(port, "/site/page")).body === "http 2", { what: "the new response" });
});

test("an answer that a middleware further out gives in its place is not stored", async () => {
  const { cache, clock } = memoryCache();
  const app = express();
  let requests = 0;
  app.use((_request, response, next) => {
    if (++requests === 3) response.send("somebody else's answer");
    else next();
  });
  app.use(httpCache(new HTTPCacheMiddleware({ cache, ttl: 10, staleWhileRevalidate: 60 }, clock)));
  app.get("/", (_request, response) => void response.send("page"));
  const port = await listen(app);
  await ask(port, "/");
  await clock.advance(11_000);
  await ask(port, "/");
  await until(() => requests === 3, { what: "the request behind it" });
  for (let time = 0; time < 3; time++) expect((await ask(port, "/")).body).toBe("page");
});

test("a writeHead that others have put in front gets no flat list", async () => {
  const { cache } = memoryCache();
  const app = express();
  const given: unknown[] = [];
  app.use((_request, response, next) => {
    const { writeHead } = response;
    response.writeHead = ((...args: Parameters<typeof writeHead>) => {
      given.push(...args.slice(1));
      return writeHead.apply(response, args);
    }) as typeof writeHead;
    next();
  });
  app.use(httpCache({ cache }));
  app.get("/", (_request, response) => void response.send("page"));
  const port = await listen(app);
  await ask(port, "/");
  expect((await ask(port, "/")).headers["cache-status"]).toContain("hit");
  expect(given.some((argument) => Array.isArray(argument))).toBe(false);
});

test("the types of Express fit", () => {
  const { cache } = memoryCache();
  const app = express();
  app.use(
    httpCache({
      cache,
      keyBuilder: (request: express.Request) => request.path,
      tags: (request) => [request.ip ?? ""],
    }),
  );
  app.use("/x", httpCache({ cache }));
  expect(app as RequestListener).toBeTypeOf("function");
});
