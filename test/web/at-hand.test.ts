// A response that the cache has at hand is sent in the turn of its request; it is counted and traced as any other hit.
import { tracingChannel } from "node:diagnostics_channel";
import { expect, test } from "vitest";
import { HTTPCacheMiddleware } from "../../src/web/engine.ts";
import { httpCache } from "../../src/web/fetch.ts";
import type { CacheForHttp } from "../../src/web/options.ts";
import { memoryCache } from "../xcache/memory-cache.ts";

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

test("it is used before anything else in the process has its turn", async () => {
  const { cache } = memoryCache();
  const { read, warm, hits } = site(cache);
  await warm();
  const third = read();
  expect(hits).toHaveLength(2);
  expect(await third).toBe("the page");
});

test("it is one hit of the cache, and one that is of no use to a request is none", async () => {
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

test("whoever traces getOrSet sees it", async () => {
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

test("a cache that is disconnected has nothing at hand", async () => {
  const { cache } = memoryCache();
  const { ask, warm } = site(cache);
  await warm();
  await cache.disconnect();
  const response = await ask();
  expect(response.headers.get("cache-status")).not.toContain("hit");
  expect(await response.text()).toBe("the page");
});

test("one that only behaves like ours is asked as always", async () => {
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
