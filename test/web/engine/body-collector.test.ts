// Bodies are streamed immediately, stored only if complete, and limited in size.
import { createServer, type RequestListener } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import express from "express";
import Fastify from "fastify";
import Koa from "koa";
import { describe, expect, onTestFinished, test } from "vitest";
import type { HttpCacheOptions } from "../../../src/web/engine/options.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { memoryCache } from "../../behaviour/cache/memory-cache.ts";
import { ask, counting, listen, subject } from "../../behaviour/web/subject.ts";
import { until } from "../../support/until.ts";

type Options = Pick<HttpCacheOptions, "maxBodyBytes">;
type Serve = (listener: RequestListener, options?: Options) => Promise<number>;

const serveNode: Serve = (listener, options = {}) =>
  listen(nodeCache({ cache: memoryCache().cache, ...options })(listener) as RequestListener);

const serveExpress: Serve = (listener, options = {}) => {
  const app = express();
  app.use(expressCache({ cache: memoryCache().cache, ...options }));
  app.use(listener);
  return listen(app);
};

const serveFastify: Serve = async (listener, options = {}) => {
  const app = Fastify();
  app.register(fastifyCache({ cache: memoryCache().cache, ...options }));
  app.all("*", (request, reply) => {
    reply.hijack();
    listener(request.raw, reply.raw);
  });
  await app.ready();
  onTestFinished(() => app.close());
  return listen(app.routing);
};

const serveKoa: Serve = (listener, options = {}) => {
  const app = new Koa();
  app.use(koaCache({ cache: memoryCache().cache, ...options }));
  app.use((context) => {
    context.respond = false;
    context.status = 200;
    listener(context.req, context.res);
  });
  return listen(app.callback());
};

describe.each([
  ["node", serveNode],
  ["express", serveExpress],
  ["fastify", serveFastify],
  ["koa", serveKoa],
] as const)("on %s", (adapter, serve) => {
  test("writes reach the client before the response ends, and the complete body is stored", async () => {
    let finish = (): void => {};
    let calls = 0;
    const port = await serve((_request, response) => {
      calls++;
      response.write("first ");
      finish = () => response.end("last");
    });
    const socket = connect(port, "127.0.0.1");
    let received = "";
    socket.on("data", (data) => {
      received += data.toString();
    });
    socket.write("GET / HTTP/1.1\r\nhost: site.test\r\n\r\n");
    await until(() => received.includes("first "), { what: "the first part" });
    expect(received).not.toContain("last");
    finish();
    await until(() => received.includes("last"), { what: "the last part" });
    socket.destroy();
    const second = await ask(port, "/");
    expect([second.body, second.headers["content-length"], calls]).toEqual(["first last", "10", 1]);
    expect(second.headers.etag).toBeDefined();
  });

  test("every way of writing a response is supported", async () => {
    const ways: Record<string, RequestListener> = {
      "/end": (_q, r) => void r.end("abc"),
      "/end-encoding": (_q, r) => void r.end("YWJj", "base64"),
      "/end-buffer": (_q, r) => void r.end(Buffer.from("abc"), () => {}),
      "/write": (_q, r) => {
        r.write("a");
        r.write(Buffer.from("b"), () => {});
        r.write("Yw==", "base64", () => {});
        r.end(() => {});
      },
      "/pipe": (_q, r) => void Readable.from(["a", "b", "c"]).pipe(r),
      "/flush": (_q, r) => {
        r.flushHeaders();
        setImmediate(() => r.end("abc"));
      },
      "/head-object": (_q, r) => void r.writeHead(200, "Fine", { "x-a": "1" }).end("abc"),
      "/head-list": (_q, r) => void r.writeHead(200, ["x-a", "1", "x-b", "2"] as never).end("abc"),
      "/head-values": (_q, r) => void r.writeHead(200, ["x-a", ["1", "2"], "x-b", "3"] as never).end("abc"),
      "/head-pairs": (_q, r) =>
        void r
          .writeHead(200, [
            ["x-a", ["1", "2"]],
            ["x-b", "3"],
          ] as never)
          .end("abc"),
      "/set": (_q, r) => {
        r.statusCode = 200;
        r.setHeader("x-a", ["1", "2"]);
        r.end("abc");
      },
    };
    // Express sets a field before the handler is called, and node:http then refuses a list of pairs.
    if (adapter === "express") delete ways["/head-pairs"];
    let calls = 0;
    const port = await serve((request, response) => {
      calls++;
      ways[request.url!]!(request, response);
    });
    for (const path of Object.keys(ways)) {
      const [first, second] = [await ask(port, path), await ask(port, path)];
      expect([first.body, second.body], path).toEqual(["abc", "abc"]);
      expect(second.headers["x-a"], path).toBe(first.headers["x-a"]);
      if (path === "/head-values" || path === "/head-pairs")
        expect([second.headers["x-a"], second.headers["x-b"]], path).toEqual(["1, 2", "3"]);
      // A response that is flushed is a stream, which nobody waits for.
      expect(second.headers["cache-status"], path).toContain(path === "/flush" ? "fwd" : "hit");
    }
    expect(calls).toBe(Object.keys(ways).length + 1);
  });

  test("a response that ends early or does not match its Content-Length is not stored", async () => {
    let calls = 0;
    const port = await serve((request, response) => {
      calls++;
      if (request.url === "/destroyed") {
        response.write("part");
        setImmediate(() => response.destroy());
      } else {
        response.setHeader("content-length", "10");
        response.end("short");
        setImmediate(() => response.socket?.destroy());
      }
    });
    for (const path of ["/destroyed", "/short"]) {
      await ask(port, path).catch(() => {});
      await ask(port, path).catch(() => {});
    }
    expect(calls).toBe(4);
  });

  test("a body larger than maxBodyBytes passes through completely and is not stored", async () => {
    let calls = 0;
    const part = "x".repeat(1_000);
    const port = await serve(
      (request, response) => {
        calls++;
        if (request.url === "/declared") response.setHeader("content-length", String(part.length * 5));
        for (let at = 0; at < 4; at++) response.write(part);
        response.end(part);
      },
      { maxBodyBytes: 4_999 },
    );
    for (const path of ["/streamed", "/declared"]) {
      for (let time = 0; time < 2; time++) expect((await ask(port, path)).body).toBe(part.repeat(5));
    }
    expect(calls).toBe(4);
  });

  test("a client that does not read does not block the others", async () => {
    const body = "x".repeat(4 * 1024 * 1024);
    let calls = 0;
    const port = await serve((_request, response) => {
      calls++;
      Readable.from(Array.from({ length: 64 }, (_, at) => body.slice(at * 65_536, (at + 1) * 65_536))).pipe(
        response,
      );
    });
    const lazy = connect(port, "127.0.0.1");
    lazy.pause();
    lazy.write("GET / HTTP/1.1\r\nhost: site.test\r\n\r\n");
    await until(() => calls === 1, { what: "the call for the lazy client" });
    expect((await ask(port, "/")).bytes.length).toBe(body.length);
    expect(calls).toBe(1);
    lazy.destroy();
  });

  test("an event stream blocks no other request", async () => {
    const open: (() => void)[] = [];
    const port = await serve((_request, response) => {
      response.setHeader("content-type", "text/event-stream");
      response.write("data: 1\n\n");
      open.push(() => response.end());
    });
    const both = [ask(port, "/"), ask(port, "/")];
    await until(() => open.length === 2, { what: "two streams at once" });
    for (const end of open) end();
    expect((await Promise.all(both)).map(({ body }) => body)).toEqual(["data: 1\n\n", "data: 1\n\n"]);
  });
});

test("a handler may reuse its buffer after writing it", async () => {
  const buffer = Buffer.from("first");
  const port = await serveNode((_request, response) => {
    response.write(buffer, () => {
      buffer.write("xxxxx");
      response.end();
    });
  });
  const first = await ask(port, "/");
  expect([first.body, (await ask(port, "/")).body]).toEqual(["first", "first"]);
});

test("createServer accepts the listener as it is", async () => {
  const server = createServer(
    nodeCache({ cache: memoryCache().cache })((_request, response) => response.end("x")),
  );
  expect(server.listenerCount("request")).toBe(1);
  expect((await (await subject("node", counting())).ask("/")).status).toBe(200);
});
