// HTTP/2 with every framework that supports it.
import {
  connect,
  createServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import {
  type CacheForHttp,
  HTTPCacheMiddleware,
  type HttpCacheOptions,
  httpCache as nodeCache,
} from "../../../src/web/node.ts";
import { moment } from "../../support/moment.ts";
import { memoryCache } from "../cache/memory-cache.ts";

interface Page {
  readonly many: readonly string[];
  readonly body: string;
}

type Serve = (engine: HTTPCacheMiddleware<never>, page: (authority: string) => Page) => Promise<Http2Server>;

const serveNode: Serve = async (engine, page) =>
  createServer(
    nodeCache<Http2ServerRequest>(engine as never)((request, response) => {
      const { many, body } = page(request.authority);
      response.setHeader("x-many", [...many]);
      response.end(body);
    }),
  );

const serveFastify: Serve = async (engine, page) => {
  const app = Fastify({ http2: true });
  app.register(fastifyCache(engine as never));
  app.get("/", (request, reply) => {
    const { many, body } = page(request.host);
    reply.header("x-many", many).send(body);
  });
  await app.ready();
  return app.server;
};

const serveKoa: Serve = async (engine, page) => {
  const app = new Koa();
  app.use(koaCache(engine as never));
  app.use((context) => {
    const { many, body } = page(context.host);
    context.set("x-many", [...many]);
    context.body = body;
  });
  return createServer(app.callback() as never);
};

const serveHono: Serve = async (engine, page) => {
  const app = new Hono();
  app.use(honoCache(engine as never, app));
  app.get("/", (context) => {
    const { many, body } = page(new URL(context.req.url).host);
    for (const line of many) context.header("x-many", line, { append: true });
    return context.body(body);
  });
  return createServer(getRequestListener(app.fetch) as never);
};

describe.each([
  ["node", serveNode],
  ["fastify", serveFastify],
  ["koa", serveKoa],
  ["hono", serveHono],
] as const)("on %s", (_, serve) => {
  test("the authority is part of the key; conditions, repeated fields, HEAD, parts and stale answers work", async () => {
    const { cache, clock } = memoryCache();
    let calls = 0;
    const engine = new HTTPCacheMiddleware<never>({ cache, ttl: 10, staleWhileRevalidate: 60 }, clock);
    const server = await serve(engine, (authority) => ({
      many: ["1", "2"],
      body: `${authority} ${++calls}`,
    }));
    const get = await client(server);
    const first = await get({ ":authority": "a.test" });
    const second = await get({ ":authority": "a.test" });
    expect([first.body, first.many]).toEqual(["a.test 1", "1, 2"]);
    expect([second.body, second.many, second.etag]).toEqual([first.body, first.many, first.etag]);
    expect([first.said, second.said]).toEqual(["xcache; fwd=uri-miss; stored", "xcache; hit; ttl=10"]);
    expect((await get({ ":authority": "b.test" })).body).toBe("b.test 2");
    const held = await get({ ":authority": "a.test", "if-none-match": first.etag });
    expect([held.status, held.body]).toEqual([304, ""]);
    const head = await get({ ":authority": "a.test", ":method": "HEAD" });
    expect([head.status, head.body, head.length]).toEqual([200, "", "8"]);
    const part = await get({ ":authority": "a.test", range: "bytes=0-4" });
    expect([part.status, part.body]).toEqual([206, "a.tes"]);
    expect(calls).toBe(2);
    await clock.advance(11_000);
    await get({ ":authority": "a.test" });
    expect(calls).toBe(3);
    expect((await get({ ":authority": "a.test" })).said).toContain("hit");
  });
});

test("a GET with content is not cached, even without a field that announces it", async () => {
  const { cache, clock } = memoryCache();
  const engine = new HTTPCacheMiddleware<never>({ cache }, clock);
  const get = await client(await serveNode(engine, () => ({ many: ["1"], body: "the page" })));
  expect((await get({}, "evil")).said).toBe("xcache; fwd=bypass; detail=content");
  expect((await get({})).said).toBe("xcache; fwd=uri-miss; stored");
  expect((await get({})).said).toContain("hit");
});

type Handle = (response: Http2ServerResponse) => void;

/** A server that calls `handle`, bare or behind the cache. */
function serveHandle(
  handle: Handle,
  options?: HttpCacheOptions<Http2ServerRequest>,
  outer: Handle = () => {},
): Http2Server {
  const listener = (_request: Http2ServerRequest, response: Http2ServerResponse): void => handle(response);
  const cached = options === undefined ? listener : nodeCache<Http2ServerRequest>(options)(listener);
  return createServer((request, response) => {
    outer(response);
    cached(request, response);
  });
}

/** What a handler sees when it calls one method after the other. */
const CALLS: Record<string, ((response: Http2ServerResponse) => unknown)[]> = {
  "writes its head twice": [(response) => response.writeHead(200), (response) => response.writeHead(404)],
  "sets a field after its head": [
    (response) => response.writeHead(200),
    (response) => response.setHeader("x-late", "1"),
    (response) => response.removeHeader("x-late"),
  ],
  "gives a field no value": [(response) => response.writeHead(200, { "x-a": undefined })],
  "gives a field two values that takes one": [
    (response) => response.setHeader("location", ["/a", "/b"]),
    (response) => response.writeHead(302),
    (response) => response.removeHeader("location"),
  ],
  "sets a field of the connection": [
    (response) => response.setHeader("te", "gzip"),
    (response) => response.writeHead(200),
    (response) => response.removeHeader("te"),
    (response) => response.end("the page"),
  ],
  "ends with something that is no chunk": [(response) => response.end(0 as never)],
  "goes on after it was reset": [
    (response) => response.stream.destroy(),
    (response) => response.writeHead(200),
    (response) => response.end("late"),
  ],
};

test.each(Object.entries(CALLS))("a handler that %s sees the same as without the cache", async (_, calls) => {
  const traces = [];
  for (const options of [undefined, { cache: memoryCache().cache }]) {
    const trace: unknown[] = [];
    const server = serveHandle((response) => {
      for (const call of calls) {
        try {
          call(response);
          trace.push("returned", response.headersSent, response.writableEnded);
        } catch (error) {
          trace.push((error as NodeJS.ErrnoException).code, response.headersSent, response.writableEnded);
        }
      }
      response.stream.destroy();
    }, options);
    const get = await client(server);
    await get({}).catch(() => {});
    traces.push(trace);
  }
  expect(traces[1]).toEqual(traces[0]);
});

test("a response that its handler resets after the end is not stored", async () => {
  let calls = 0;
  const server = serveHandle(
    (response) => {
      calls++;
      response.end("the page");
      if (calls === 1) response.write("too late");
    },
    { cache: memoryCache().cache },
  );
  const get = await client(server);
  await expect(get({})).rejects.toThrow("closed with error code");
  expect(await get({})).toMatchObject({ body: "the page", said: "xcache; fwd=uri-miss; stored" });
});

test("a head that ends the response leaves when it is written", async () => {
  let response: Http2ServerResponse | undefined;
  const server = serveHandle(
    (given) => {
      response = given.writeHead(204);
    },
    { cache: memoryCache().cache },
  );
  const get = await client(server);
  expect(await get({})).toMatchObject({ status: 204, body: "" });
  response?.end();
});

test("the reason phrase, which HTTP/2 does not have, is not touched: node would print a warning", async () => {
  let touched = 0;
  const count = { get: () => touched++, set: () => touched++ };
  const server = serveHandle(
    (response) => response.end("the page"),
    { cache: memoryCache().cache },
    (response) => Object.defineProperty(response, "statusMessage", count),
  );
  const get = await client(server);
  for (let visit = 0; visit < 2; visit++) expect((await get({})).body).toBe("the page");
  expect(touched).toBe(0);
});

test.each([
  ["a body", (response: Http2ServerResponse) => void response.end("changed")],
  ["no body", (response: Http2ServerResponse) => void response.writeHead(303, { location: "/" }).end()],
  ["an empty end", (response: Http2ServerResponse) => void response.end()],
])("the response to a POST with %s ends when the page is invalidated", async (_, handle) => {
  const { cache } = memoryCache();
  const invalidated = moment();
  const asked = moment();
  const isHeld: string[] = [];
  const slow: CacheForHttp = {
    get: (key) => cache.get(key),
    getOrSet: (key, load, options) => cache.getOrSet(key, load, options),
    set: (key, value, options) => cache.set(key, value, options),
    delete: async (keys) => {
      asked.let();
      await invalidated.come;
      return cache.delete(keys);
    },
    invalidateTags: (tags) => cache.invalidateTags(tags),
  };
  const get = await client(serveHandle(handle, { cache: slow }));
  const posting = get({ ":method": "POST" }).then(() => isHeld.push("response"));
  await asked.come;
  // Anything that did not wait would arrive with this.
  await get({ ":path": "/other" });
  isHeld.push("invalidation");
  invalidated.let();
  await posting;
  expect(isHeld).toEqual(["invalidation", "response"]);
});

interface Got {
  readonly status: number;
  readonly body: string;
  readonly many: unknown;
  readonly etag: string;
  readonly length: unknown;
  readonly said: unknown;
}

async function client(
  server: Http2Server,
): Promise<(headers: Record<string, string>, content?: string) => Promise<Got>> {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  return (headers, content) =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ":path": "/", ...headers }, { endStream: content === undefined });
      let body = "";
      let head: Record<string, unknown> = {};
      stream.on("response", (given) => {
        head = given;
      });
      stream.on("data", (data) => {
        body += data;
      });
      stream.on("end", () => {
        const { ":status": status, "x-many": many, "content-length": length, "cache-status": said } = head;
        resolve({ status: status as number, many, body, etag: head.etag as string, length, said });
      });
      stream.on("error", reject);
      if (content !== undefined) stream.end(content);
    });
}
