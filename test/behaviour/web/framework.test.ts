// The cache inside each framework: mounted routes, outer middleware, errors, streams, options per route.
import { request as httpRequest, type RequestListener } from "node:http";
import { Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { moment } from "../../support/moment.ts";
import { until } from "../../support/until.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { FRAMEWORKS, type Route, site } from "./site.ts";
import { listen } from "./subject.ts";

/** A page that counts how often it was made. */
function counted(path: string, options: Route["options"] = {}): Route & { calls: number } {
  return {
    path,
    options,
    calls: 0,
    handle() {
      return `${path} ${++this.calls}`;
    },
  };
}

describe.each(FRAMEWORKS)("on %s", (framework) => {
  test("the key is the whole URL, wherever the cache is mounted", async () => {
    const route: Route = { path: "/page", handle: (url) => url };
    const { ask, cache } = await site(framework, { routes: [route] });
    for (const path of ["/site/page", "/site/page?x=1", "/site/page"])
      expect((await ask(path)).body).toBe(path);
    expect((await ask("/site/page?x=1")).headers["cache-status"]).toContain("hit");
    expect(await cache.get("web:http 9:site.test/site/page?x=1")).toBeDefined();
  });

  test("each route has its own ttl and tags", async () => {
    const short = counted("/short", { ttl: 10, tags: ["short"] });
    const long = counted("/long", { ttl: () => 100, tags: () => ["long"] });
    const { ask, cache, clock } = await site(framework, { routes: [short, long] });
    const both = async (): Promise<string[]> => [
      (await ask("/site/short")).body,
      (await ask("/site/long")).body,
    ];
    expect(await both()).toEqual(["/short 1", "/long 1"]);
    await clock.advance(11_000);
    expect(await both()).toEqual(["/short 2", "/long 1"]);
    await cache.invalidateTags("long");
    expect(await both()).toEqual(["/short 2", "/long 2"]);
    await cache.invalidateTags("short");
    expect(await both()).toEqual(["/short 3", "/long 2"]);
  });

  test("fields set by outer middleware belong to this request, not to the stored response", async () => {
    let requests = 0;
    const { ask } = await site(framework, {
      routes: [counted("/page")],
      outer: (set) => void set("x-outer", `${++requests}`),
    });
    const first = await ask("/site/page");
    const second = await ask("/site/page");
    const held = await ask("/site/page", { "if-none-match": first.headers.etag! });
    expect([first, second, held].map(({ status, headers }) => [status, headers["x-outer"]])).toEqual([
      [200, "1"],
      [200, "2"],
      [304, "3"],
    ]);
    expect(second.headers["cache-status"]).toContain("hit");
  });

  test("fields set by outer middleware are also on a 304 sent instead of the handler's response", async () => {
    const { ask } = await site(framework, {
      routes: [counted("/page")],
      outer: (set) => void set("access-control-allow-origin", "*"),
    });
    const { status, headers } = await ask("/site/page", { "if-none-match": "*" });
    expect([status, headers["access-control-allow-origin"], headers["content-length"]]).toEqual([
      304,
      "*",
      undefined,
    ]);
  });

  test("a response that outer middleware rejects is not stored", async () => {
    const { ask } = await site(framework, {
      routes: [counted("/page")],
      outer: (set) => void set("cache-control", "no-store"),
    });
    await ask("/site/page");
    const second = await ask("/site/page");
    expect([second.body, second.headers["cache-control"]]).toEqual(["/page 2", "no-store"]);
  });

  test("a handler's error becomes the application's error response, and is not stored", async () => {
    let calls = 0;
    const broken: Route = {
      path: "/broken",
      handle() {
        calls++;
        throw new Error("broken");
      },
    };
    const { ask } = await site(framework, {
      routes: [broken],
      failed: ({ message }) => ({ status: 503, body: `handled ${message}` }),
    });
    for (let time = 0; time < 2; time++) {
      const { status, body, headers } = await ask("/site/broken");
      expect([status, body]).toEqual([503, "handled broken"]);
      expect(headers["cache-status"]).toBe("xcache; fwd=uri-miss; detail=status");
    }
    expect(calls).toBe(2);
    const bare = await site(framework, { routes: [broken] });
    expect((await bare.ask("/site/broken")).status).toBe(500);
    expect((await bare.ask("/site/missing")).status).toBe(404);
  });

  test("a throwing handler is covered by the stale response within the window", async () => {
    let isBroken = false;
    const route: Route = {
      path: "/page",
      options: { ttl: 10, staleIfError: 30 },
      handle() {
        if (isBroken) throw new Error("broken");
        return "the page";
      },
    };
    const { ask, clock } = await site(framework, {
      routes: [route],
      outer: (set) => void set("x-outer", "1"),
    });
    await ask("/site/page");
    isBroken = true;
    await clock.advance(15_000);
    const { status, message, body, headers } = await ask("/site/page");
    expect([status, message, body, headers["x-outer"]]).toEqual([200, "OK", "the page", "1"]);
    await clock.advance(30_000);
    expect((await ask("/site/page")).status).toBe(500);
  });

  test("a complete stream is stored, a failing one is not", async () => {
    let calls = 0;
    const stream: Route = {
      path: "/stream",
      handle: () => Readable.from([Buffer.from("one "), Buffer.from("two")]),
    };
    const failing: Route = {
      path: "/failing",
      handle() {
        calls++;
        return Readable.from(
          (async function* () {
            yield Buffer.from("one ");
            await new Promise((resume) => setImmediate(resume));
            throw new Error("broken");
          })(),
        ).on("error", () => {});
      },
    };
    const { ask } = await site(framework, { routes: [stream, failing] });
    expect((await ask("/site/stream")).body).toBe("one two");
    const second = await ask("/site/stream");
    expect([second.body, second.headers["content-length"]]).toEqual(["one two", "7"]);
    expect(second.headers["cache-status"]).toContain("hit");
    // The server of Hono writes what happened there.
    vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => void vi.restoreAllMocks());
    for (let time = 0; time < 2; time++) await expect(ask("/site/failing")).rejects.toThrow();
    expect(calls).toBe(2);
  });

  test("a handler that fills the cache does not see unkeyed fields", async () => {
    const route: Route = { path: "/page", handle: (_url, header) => `host ${header("x-host")}` };
    const { ask } = await site(framework, { routes: [route] });
    await ask("/site/page", { "x-host": "evil.test" });
    expect((await ask("/site/page")).body).toBe("host undefined");
  });

  test("a background refresh goes through the application again, without a client", async () => {
    let requests = 0;
    const page = counted("/page", { ttl: 10, staleWhileRevalidate: 60 });
    const { ask, clock } = await site(framework, {
      routes: [page],
      outer: (set) => void set("x-outer", `${++requests}`),
    });
    await ask("/site/page");
    await clock.advance(11_000);
    const stale = await ask("/site/page");
    expect([stale.body, stale.headers["x-outer"]]).toEqual(["/page 1", "2"]);
    await until(async () => (await ask("/site/page")).body === "/page 2", { what: "the new response" });
    expect(page.calls).toBe(2);
    const hit = await ask("/site/page");
    expect(hit.headers["x-outer"]).toBe(`${requests}`);
  });

  test("a response by outer middleware is not stored", async () => {
    let requests = 0;
    const { ask, clock } = await site(framework, {
      routes: [counted("/page", { ttl: 10, staleWhileRevalidate: 60 })],
      outer: () => (++requests === 3 ? "somebody else's answer" : undefined),
    });
    await ask("/site/page");
    await clock.advance(11_000);
    await ask("/site/page");
    await until(() => requests === 3, { what: "the request behind it" });
    for (let time = 0; time < 3; time++) expect((await ask("/site/page")).body).toMatch(/^\/page/);
  });
});

test("on hono the body of a response whose client has left is cancelled", async () => {
  const [isCalled, hasLeft, isCancelled] = [moment(), moment(), moment()];
  const app = new Hono();
  app.use(honoCache({ cache: memoryCache().cache }, app));
  app.post("/", async (context) => {
    isCalled.let();
    await hasLeft.come;
    return context.body(new ReadableStream({ cancel: isCancelled.let }, { highWaterMark: 0 }));
  });
  const listener = getRequestListener(app.fetch) as RequestListener;
  const port = await listen((request, response) => {
    request.socket.once("close", hasLeft.let);
    listener(request, response);
  });
  const sent = httpRequest({ host: "127.0.0.1", port, method: "POST" }).end();
  sent.on("error", () => {});
  await isCalled.come;
  sent.destroy();
  await isCancelled.come;
});
