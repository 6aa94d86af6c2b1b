// Express specifics: nested applications, its own ETag, a writeHead patched by other middleware.
import type { RequestListener } from "node:http";
import cors from "cors";
import express from "express";
import session from "express-session";
import { expect, test } from "vitest";
import { HTTPCacheMiddleware, httpCache } from "../../src/web/express.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { ask, listen } from "../behaviour/web/subject.ts";
import { until } from "../support/until.ts";

test("Express's own ETag is kept, and its 304 freshens the stored response", async () => {
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

test("a background refresh goes through the application again, without a client", async () => {
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

test("a field of outer middleware to which the handler adds a line has both lines on a hit", async () => {
  const { cache } = memoryCache();
  const app = express();
  app.use(cors({ origin: ["http://a.test", "http://b.test"] }));
  app.use(httpCache({ cache }));
  app.use((_request, response) => {
    response.set("Cache-Control", "max-age=60").append("Vary", "Accept").send("page");
  });
  const port = await listen(app);
  const varies = [(await ask(port, "/")).headers, (await ask(port, "/")).headers].map(({ vary }) => vary);
  expect(varies).toEqual(["Origin, Accept", "Origin, Accept"]);
});

test("a revalidated response is sent although a session behind the cache has seen the end of the handler's", async () => {
  const { cache } = memoryCache();
  const app = express();
  app.use(httpCache({ cache }));
  app.use(session({ secret: "a secret", resave: false, saveUninitialized: false }));
  app.use((_request, response) => {
    response.set("Cache-Control", "max-age=0").send("page");
  });
  const port = await listen(app);
  const first = await ask(port, "/");
  const statuses = [first.status];
  const held = { "if-none-match": first.headers.etag! };
  for (const [path, headers] of [
    ["/", {}],
    ["/", held],
    ["/new", held],
  ] as const)
    statuses.push((await ask(port, path, { headers })).status);
  expect(statuses).toEqual([200, 200, 304, 304]);
});

test("a patched writeHead does not get a flat header list", async () => {
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
