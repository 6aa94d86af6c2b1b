// A response in local memory is sent in the same turn of the event loop, and is counted and traced like any other hit.
import { tracingChannel } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { COARSE_LAG_MS } from "../../../src/core/clock.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import type { CacheForHttp } from "../../../src/web/engine/options.ts";
import { httpCache } from "../../../src/web/fetch.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { memoryCache } from "../../behaviour/cache/memory-cache.ts";
import { type Ask, ask, counting, listen, subject } from "../../behaviour/web/subject.ts";

const PAGE = "http://site.test/page";

/** A site on a cache, whose hits are noted as they are told. */
function site(cache: CacheForHttp, respond: () => Response = () => new Response("the page")) {
  const hits: string[] = [];
  const engine = new HTTPCacheMiddleware<Request>({ cache, onHit: ({ key }) => hits.push(key) });
  const handler = httpCache(engine)(respond);
  const ask = (headers = {}): Promise<Response> => handler(new Request(PAGE, { headers }));
  const read = async (headers = {}): Promise<string> => (await ask(headers)).text();
  /** The second may still wait for what the first brought. */
  const warm = async (headers = {}): Promise<void> => {
    for (let time = 0; time < 2; time++) await read(headers);
  };
  return { hits, engine, ask, read, warm };
}

test("it is sent before anything else in the process runs", async () => {
  const { cache } = memoryCache();
  const { read, warm, hits } = site(cache);
  await warm();
  const third = read();
  expect(hits).toHaveLength(2);
  expect(await third).toBe("the page");
});

test("it counts as one hit; a stored response that a request cannot use does not count", async () => {
  const { cache } = memoryCache();
  const varying = site(cache, () => new Response("the page", { headers: { vary: "x-kind" } }));
  await varying.warm({ "x-kind": "a" });
  const before = (await cache.getStats()).totalHits;
  await varying.read({ "x-kind": "a" });
  // The list of variants, and the variant.
  expect((await cache.getStats()).totalHits - before).toBe(2);
  await cache.clear();
  const plain = site(cache);
  await plain.warm();
  const then = (await cache.getStats()).totalHits;
  await plain.read();
  expect((await cache.getStats()).totalHits - then).toBe(1);
  expect(plain.engine.counts).toMatchObject({ hits: 2, misses: 1, errors: 0 });
});

test("tracing of getOrSet includes it", async () => {
  const { cache } = memoryCache();
  const { read, warm } = site(cache);
  await warm();
  const traced: unknown[] = [];
  const channel = tracingChannel<unknown, { key?: string }>("xcache:getOrSet");
  const subscriber = { start: ({ key }: { key?: string }) => void traced.push(key) } as never;
  channel.subscribe(subscriber);
  try {
    await read();
  } finally {
    channel.unsubscribe(subscriber);
  }
  expect(traced).toEqual(["web:http 9:site.test/page"]);
});

test("a disconnected cache does not serve it", async () => {
  const { cache } = memoryCache();
  const { ask, warm } = site(cache);
  await warm();
  await cache.disconnect();
  const response = await ask();
  expect(response.headers.get("cache-status")).not.toContain("hit");
  expect(await response.text()).toBe("the page");
});

test("a cache that only has the same methods is read asynchronously", async () => {
  const { cache } = memoryCache();
  const another: CacheForHttp = {
    get: (key) => cache.get(key),
    getOrSet: (key, load, options) => cache.getOrSet(key, load, options),
    set: (key, value, options) => cache.set(key, value, options),
    delete: (keys) => cache.delete(keys),
    invalidateTags: (tags) => cache.invalidateTags(tags),
  };
  const { ask, warm, hits } = site(another);
  await warm();
  expect((await ask()).headers.get("cache-status")).toContain("hit");
  expect(hits).toHaveLength(2);
});

test("a HEAD gets the head without the body", async () => {
  const { cache } = memoryCache();
  const { engine, warm } = site(cache);
  await warm();
  const response = await httpCache(engine)(() => new Response("another"))(
    new Request(PAGE, { method: "HEAD" }),
  );
  expect([response.body, response.headers.get("content-length")]).toEqual([null, "8"]);
});

describe("with a lagging clock", () => {
  /** The store's time stands still: what it holds stays fresh to it. */
  class LaggingWall extends ManualClock {
    passedMs = 0;
    readonly wall = (): number => this.now() + this.passedMs;
    readonly coarseWall = (): number => this.wall() - COARSE_LAG_MS;
  }

  async function served() {
    const clock = new LaggingWall();
    let calls = 0;
    const engine = new HTTPCacheMiddleware<IncomingMessage>({ cache: memoryCache().cache, ttl: 60 }, clock);
    const port = await listen(nodeCache(engine)((_request, response) => response.end(`answer ${++calls}`)));
    await ask(port, "/");
    return async (passedMs: number, given: Ask = {}) => {
      clock.passedMs = passedMs;
      const { body, headers } = await ask(port, "/", given);
      return [body, headers.age, headers["cache-status"]];
    };
  }

  test("its age may be a second behind while it is far from expiry", async () => {
    const askAt = await served();
    expect(await askAt(0)).toEqual(["answer 1", "0", "xcache; hit; ttl=60"]);
    expect(await askAt(30_000)).toEqual(["answer 1", "29", "xcache; hit; ttl=31"]);
    expect(await askAt(59_999)).toEqual(["answer 1", "58", "xcache; hit; ttl=2"]);
  });

  test("it is not served once expired", async () => {
    const askAt = await served();
    expect((await askAt(60_000))[0]).toBe("answer 2");
  });

  test("a conditional request gets the exact age", async () => {
    const askAt = await served();
    const headers = { "if-none-match": '"other"' };
    expect(await askAt(30_000, { headers })).toEqual(["answer 1", "30", "xcache; hit; ttl=30"]);
  });
});

describe("over node:http", () => {
  test("alternating hosts each get their own response", async () => {
    const { ask, calls } = await subject("node", ({ headers, url }) => ({ body: `${headers.host}${url}` }));
    for (let round = 0; round < 3; round++) {
      for (const host of ["a.test", "b.test"]) {
        for (const path of ["/", "/x"]) {
          expect((await ask(path, { headers: { host } })).body).toBe(host + path);
        }
      }
    }
    expect(calls).toHaveLength(4);
  });

  test("a replaced response is sent with its own fields", async () => {
    const script = ({ call }: { call: number }) => ({
      headers: { "x-call": `${call}` },
      body: "x".repeat(call),
    });
    const { ask, cache } = await subject("node", script);
    const other = await subject("node", ({ call }) => script({ call: call + 7 }), { cache });
    const got = async () => {
      const { body, headers } = await ask("/");
      return [body.length, headers["content-length"], headers["x-call"]];
    };
    for (let time = 0; time < 3; time++) expect((await got()).at(-1)).toBe("1");
    await other.ask("/", { method: "POST" });
    await other.ask("/");
    for (let time = 0; time < 2; time++) expect(await got()).toEqual([9, "9", "9"]);
  });

  test("a foreign value without a time is not considered fresh", async () => {
    const { ask, cache } = await subject("node", counting());
    const foreign = `Rabcdefghijk${JSON.stringify({ status: 200, message: "", headers: [] })}\nforeign`;
    await cache.set("web:http 9:site.test/", foreign);
    expect((await ask("/")).body).toBe("answer 1");
  });

  test.each([204, 205, 404])("status %i is repeated as it was sent", async (status) => {
    const script = () => ({
      status,
      headers: { "x-kept": "1" },
      ...(status === 404 ? { body: "none" } : {}),
    });
    const { ask, calls } = await subject("node", script, { cacheNonOk: true });
    const seen = async (method?: string) => {
      const { status, message, body, headers } = await ask("/", method === undefined ? {} : { method });
      return [status, message, body, headers["x-kept"]];
    };
    const first = await seen();
    for (let time = 0; time < 2; time++) expect(await seen()).toEqual(first);
    expect(await seen("HEAD")).toEqual(first.with(2, ""));
    expect((await ask("/")).headers["content-length"]).toBe(status === 404 ? "4" : undefined);
    expect(calls).toHaveLength(1);
  });
});
