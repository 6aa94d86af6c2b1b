// What is special about node:http: interim responses, what a listener throws.
import { request as httpRequest, type IncomingMessage } from "node:http";
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
