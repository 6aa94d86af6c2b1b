// What is special about node:http and node:http2: interim responses, HTTP/2, what a listener throws.
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, createServer as createHttp2Server, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HTTPCacheMiddleware, httpCache } from "../../src/web/node.ts";
import { until } from "../support/until.ts";
import { memoryCache } from "../xcache/memory-cache.ts";
import { ask, listen } from "./subject.ts";

test("interim responses pass through, and are not repeated from the cache", async () => {
  const port = await listen(
    httpCache({ cache: memoryCache().cache })((_request, response) => {
      response.writeProcessing();
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.end("page");
    }),
  );
  const statuses = (): Promise<number[]> =>
    new Promise((resolve, reject) => {
      const seen: number[] = [];
      const request = httpRequest({ host: "127.0.0.1", port, agent: false });
      request.on("information", ({ statusCode }) => seen.push(statusCode));
      request.on("response", (response) => {
        seen.push(response.statusCode!);
        response.resume().on("end", () => resolve(seen));
      });
      request.on("error", reject).end();
    });
  expect(await statuses()).toEqual([102, 103, 200]);
  expect(await statuses()).toEqual([200]);
});

test("HTTP/2: the authority is part of the key, conditions and repeated fields work", async () => {
  const { cache, clock } = memoryCache();
  let calls = 0;
  const engine = new HTTPCacheMiddleware<Http2ServerRequest>({ cache }, clock);
  const server = createHttp2Server(
    httpCache<Http2ServerRequest>(engine)((request, response) => {
      calls++;
      response.setHeader("x-many", ["1", "2"]);
      response.end(`${request.authority} ${calls}`);
    }),
  );
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const get = (
    headers: Record<string, string>,
  ): Promise<{ status: number; many: unknown; body: string; etag: string }> =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ":path": "/", ...headers });
      let body = "";
      let head: Record<string, unknown> = {};
      stream.on("response", (given) => {
        head = given;
      });
      stream.on("data", (data) => {
        body += data;
      });
      stream.on("end", () =>
        resolve({ status: head[":status"] as number, many: head["x-many"], body, etag: head.etag as string }),
      );
      stream.on("error", reject).end();
    });
  const first = await get({ ":authority": "a.test" });
  expect(await get({ ":authority": "a.test" })).toEqual(first);
  expect([first.body, first.many]).toEqual(["a.test 1", "1, 2"]);
  expect((await get({ ":authority": "b.test" })).body).toBe("b.test 2");
  expect((await get({ ":authority": "a.test", "if-none-match": first.etag })).status).toBe(304);
  expect(calls).toBe(2);
});

test("what a listener throws is thrown as without a cache", async () => {
  const thrown: unknown[] = [];
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  const collect = (error: unknown): void => void thrown.push(error);
  process.on("uncaughtException", collect);
  onTestFinished(() => {
    process.off("uncaughtException", collect);
    for (const listener of before) process.on("uncaughtException", listener);
  });
  const port = await listen(
    httpCache({ cache: memoryCache().cache })(() => {
      throw new Error("broken");
    }),
  );
  const request = httpRequest({ host: "127.0.0.1", port, agent: false });
  request.on("error", () => {}).end();
  await until(() => thrown.length > 0, { what: "the error" });
  request.destroy();
  expect(thrown.map((error) => (error as Error).message)).toEqual(["broken"]);
});

test("the X-Cache field, another name and none at all", async () => {
  const { cache } = memoryCache();
  const field = async (options: object, name: string): Promise<(string | undefined)[]> => {
    await cache.clear();
    const port = await listen(httpCache({ cache, ...options })((_request, response) => response.end("x")));
    const answers = [
      await ask(port, "/"),
      await ask(port, "/"),
      await ask(port, "/", { headers: { cookie: "a" } }),
    ];
    return answers.map(({ headers }) => headers[name] as string | undefined);
  };
  expect(await field({ statusHeader: "X-Cache" }, "x-cache")).toEqual(["MISS", "HIT", "BYPASS"]);
  expect(await field({ statusHeader: false }, "cache-status")).toEqual([undefined, undefined, undefined]);
  expect((await field({ cacheStatus: "edge" }, "cache-status"))[1]).toBe("edge; hit; ttl=60");
});

test("one HTTP cache can serve several listeners", async () => {
  const engine = new HTTPCacheMiddleware<IncomingMessage>({ cache: memoryCache().cache });
  const wrap = httpCache(engine);
  const ports = [];
  for (const name of ["one", "two"])
    ports.push(await listen(wrap((_request, response) => response.end(name))));
  expect((await ask(ports[0]!, "/")).body).toBe("one");
  expect((await ask(ports[1]!, "/")).body).toBe("one");
  expect(engine.counts).toMatchObject({ hits: 1, misses: 1 });
});
