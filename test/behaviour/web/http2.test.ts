// HTTP/2 with every framework that supports it.
import { connect, createServer, type Http2Server, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { HTTPCacheMiddleware, httpCache as nodeCache } from "../../../src/web/node.ts";
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
