// node:http specifics: interim responses, errors thrown by a listener.
import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInThisContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { HTTPCacheMiddleware, httpCache } from "../../src/web/node.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { ask, listen } from "../behaviour/web/subject.ts";
import { until } from "../support/until.ts";

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

test("an error thrown by a listener is thrown as without a cache", async () => {
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

/** Later ones make a dictionary of an object whenever something is deleted. */
const givesShapesBack = process.versions.v8.startsWith("11.");

test.runIf(givesShapesBack).each([
  ["in one call", (response: ServerResponse) => response.end("page")],
  ["after its head", (response: ServerResponse) => response.writeHead(200, { "x-a": "1" }).end("page")],
  ["in parts", (response: ServerResponse) => response.write("pa") && response.end("ge")],
])("a response that fills the cache %s keeps the shape that node:http is fast with", async (_, answer) => {
  setFlagsFromString("--allow-natives-syntax");
  const isFast = runInThisContext("(object) => %HasFastProperties(object)") as (object: object) => boolean;
  const ended: ServerResponse[] = [];
  const port = await listen(
    httpCache({ cache: memoryCache().cache })((_request, response) => {
      ended.push(response);
      answer(response);
    }),
  );
  expect((await ask(port, "/")).body).toBe("page");
  expect(ended.map(isFast)).toEqual([true]);
  expect(Object.keys(ended[0]!)).not.toContain("end");
});

test("a writeHead that a handler patches after sending its head stays patched", async () => {
  const own = (): never => {
    throw new Error("never called");
  };
  const ended: ServerResponse[] = [];
  const port = await listen(
    httpCache({ cache: memoryCache().cache })((_request, response) => {
      ended.push(response);
      response.write("pa");
      response.writeHead = own;
      response.end("ge");
    }),
  );
  expect((await ask(port, "/")).body).toBe("page");
  expect(ended[0]?.writeHead).toBe(own);
});
