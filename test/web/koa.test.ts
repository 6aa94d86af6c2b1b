// Koa specifics: it responds after all middleware has returned, and middleware sees errors on the way back.
import { Readable } from "node:stream";
import Koa from "koa";
import { expect, test } from "vitest";
import { HTTPCacheMiddleware, httpCache, type KoaContext } from "../../src/web/koa.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { ask, listen } from "../behaviour/web/subject.ts";
import { until } from "../support/until.ts";

test("a success page in place of an error is not stored, an error status is", async () => {
  const app = new Koa();
  let calls = 0;
  app.use(async (context, next) => {
    try {
      await next();
    } catch (error) {
      if ((error as { status?: number }).status === 410) throw error;
      context.body = (error as Error).message;
    }
  });
  app.use(httpCache({ cache: memoryCache().cache }));
  app.use((context) => {
    if (context.path === "/gone") context.throw(410, "gone");
    throw new Error(`broken ${++calls}`);
  });
  const port = await listen(app.callback());
  for (const body of ["broken 1", "broken 2"]) {
    const answer = await ask(port, "/broken");
    expect([answer.status, answer.body]).toEqual([200, body]);
    expect(answer.headers["cache-status"]).toBe("xcache; fwd=uri-miss; detail=error");
  }
  const gone = await ask(port, "/gone");
  expect([gone.status, gone.body]).toEqual([410, "gone"]);
});

test("a success page in place of an error is not stored by a background refresh either", async () => {
  const { cache, clock } = memoryCache();
  const app = new Koa();
  let calls = 0;
  app.use(async (context, next) => {
    try {
      await next();
    } catch {
      context.body = "sorry";
    }
  });
  app.use(
    httpCache(new HTTPCacheMiddleware<KoaContext>({ cache, ttl: 10, staleWhileRevalidate: 60 }, clock)),
  );
  app.use((context) => {
    if (++calls === 2) throw new Error("broken");
    context.body = `answer ${calls}`;
  });
  const port = await listen(app.callback());
  await ask(port, "/");
  await clock.advance(11_000);
  await ask(port, "/");
  await until(() => calls === 2, { what: "the call behind it" });
  // A refresh that failed is not repeated at once.
  await clock.advance(31_000);
  await until(async () => (await ask(port, "/")).body === "answer 3", { what: "the next one" });
  expect(await cache.get<string>("web:http 9:site.test/")).not.toContain("sorry");
});

test("outer middleware completes on a hit and sees its status", async () => {
  const app = new Koa();
  const seen: [number, boolean][] = [];
  app.use(async (context, next) => {
    await next();
    seen.push([context.status, context.headerSent]);
    context.set("x-after", "1");
  });
  app.use(httpCache({ cache: memoryCache().cache, cacheNonOk: true }));
  app.use((context) => {
    context.status = 203;
    context.body = { a: 1 };
  });
  const port = await listen(app.callback());
  const [first, second] = [await ask(port, "/"), await ask(port, "/")];
  expect([first.body, second.body]).toEqual(['{"a":1}', '{"a":1}']);
  expect([first.status, second.status, second.message]).toEqual([203, 203, "Non-Authoritative Information"]);
  expect([first.headers["x-after"], second.headers["x-after"]]).toEqual(["1", "1"]);
  expect(seen).toEqual([
    [203, false],
    [203, false],
  ]);
});

test("a body that outer middleware replaces is stored as it was sent, and not replaced once more", async () => {
  const app = new Koa();
  const { cache } = memoryCache();
  app.use(async (context, next) => {
    await next();
    if (context.get("x-refuse") !== "") context.throw(403, "refused");
  });
  app.use(async (context, next) => {
    await next();
    if (context.path === "/envelope") context.body = { data: context.body };
    if (context.path === "/stream") context.body = Readable.from([`<${String(context.body)}>`]);
    context.set("x-length", String(context.length));
  });
  app.use(httpCache({ cache }));
  app.use((context) => {
    context.body = context.path === "/envelope" ? { a: 1 } : "page";
  });
  app.silent = true;
  const port = await listen(app.callback());
  for (const [path, body, type] of [
    ["/envelope", '{"data":{"a":1}}', "application/json; charset=utf-8"],
    ["/stream", "<page>", "text/plain; charset=utf-8"],
    ["/plain", "page", "text/plain; charset=utf-8"],
  ]) {
    for (let time = 0; time < 3; time++) {
      const { headers, ...got } = await ask(port, path!);
      expect([got.status, got.body, headers["content-type"]]).toEqual([200, body, type]);
      expect(headers["cache-status"]?.includes("hit")).toBe(time > 0);
    }
    const refused = await ask(port, path!, { headers: { "x-refuse": "1" } });
    expect([refused.status, refused.body]).toEqual([403, "refused"]);
    expect((await ask(port, path!)).body).toBe(body);
  }
});

test("a cookie that middleware sets on the way back is not stored", async () => {
  const app = new Koa();
  let calls = 0;
  app.use(async (context, next) => {
    await next();
    context.cookies.set("session", "1");
  });
  app.use(httpCache({ cache: memoryCache().cache }));
  app.use((context) => {
    context.body = `answer ${++calls}`;
  });
  const port = await listen(app.callback());
  await ask(port, "/");
  const second = await ask(port, "/");
  expect([second.body, second.headers["cache-status"]]).toEqual([
    "answer 2",
    "xcache; fwd=uri-miss; detail=set-cookie",
  ]);
});

test("a response in place of the handler's has its own reason phrase", async () => {
  const app = new Koa();
  app.use(httpCache({ cache: memoryCache().cache }));
  app.use((context) => {
    context.body = "page";
  });
  const port = await listen(app.callback());
  for (let time = 0; time < 2; time++) {
    const { status, message } = await ask(port, "/", { headers: { "if-none-match": "*" } });
    expect([status, message]).toEqual([304, "Not Modified"]);
  }
});

test("the types of Koa fit", () => {
  const { cache } = memoryCache();
  const app = new Koa<{ user: string }>();
  app.use(httpCache({ cache }));
  app.use(
    httpCache({
      cache,
      keyBuilder: (context: Koa.ParameterizedContext<{ user: string }>) =>
        `${context.state.user} ${context.path}`,
      tags: (context) => [context.path],
    }),
  );
  expect(app.middleware).toHaveLength(2);
});
