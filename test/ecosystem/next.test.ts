// The cache handlers of Next under Next's own IncrementalCache: values, lifetimes, tags and failures.
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CacheEntry, CacheHandler } from "next/cache.js";
import { IncrementalCache } from "next/dist/server/lib/incremental-cache/index.js";
import { describe, expect, test, vi } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { BackendError, ConfigError } from "../../src/core/errors.ts";
import { type NextCacheOptions, nextCacheHandler, nextUseCacheHandler } from "../../src/ecosystem/next.ts";
import type { XCache } from "../../src/xcache.ts";
import { listed, memoryCache } from "../behaviour/cache/memory-cache.ts";
import { redisCaches } from "../support/redis-caches.ts";
import { runFolder } from "../support/run-folder.ts";
import { failingCache } from "./failing-cache.ts";

const caches = redisCaches({ operationTimeout: 10 });

/** The methods of Next's cache and of a handler, for values written here in the form that Next gives them. */
interface Cache {
  get(key: string, context: unknown): Promise<Seen | null>;
  set(key: string, value: unknown, context: unknown): Promise<void>;
  revalidateTag(tags: string | string[], durations?: { expire?: number }): Promise<void>;
}

interface Seen {
  readonly value: unknown;
  readonly isStale?: boolean | -1;
  readonly lastModified?: number;
  readonly cacheControl?: unknown;
}

/** What a Next server creates for every request; with its own cache, each acts as a separate process. */
function requests(cache: XCache): () => Cache {
  const settings = {
    dev: false,
    requestHeaders: {},
    serverDistDir: "/app/.next/server",
    previewProps: { previewModeId: "preview" },
    prerenderManifest: { routes: {}, dynamicRoutes: {}, notFoundRoutes: [] },
    CurCacheHandler: nextCacheHandler(cache, { buildId: "build" }),
  };
  type Settings = ConstructorParameters<typeof IncrementalCache>[0];
  return () => new IncrementalCache(settings as unknown as Settings) as unknown as Cache;
}

/** Handlers as such, one for every request. */
function handlers(
  cache: XCache,
  options: NextCacheOptions = {},
  clock?: Clock,
  serverDistDir?: string,
): () => Cache {
  const Handler = nextCacheHandler(cache, options, clock);
  const context = { revalidatedTags: [], _requestHeaders: {}, ...(serverDistDir && { serverDistDir }) };
  return () => new Handler(context) as unknown as Cache;
}

const route = { kind: "APP_PAGE", sourceRoute: "/items/[slug]/page" };
const pageContext = {
  kind: "APP_PAGE",
  route,
  isFallback: false,
  isRoutePPREnabled: false,
};
const stored = (revalidate: number | false, expire?: number) => ({
  ...pageContext,
  cacheControl: { revalidate, expire },
});

const page = (text: string, tags?: string) => ({
  kind: "APP_PAGE",
  html: `<p>${text}</p>`,
  rscData: Buffer.from([0, 1, 255]),
  headers: tags === undefined ? undefined : { "x-next-cache-tags": tags, "set-cookie": ["a", "b"] },
  postponed: undefined,
  status: 200,
  segmentData: new Map([
    ["/_tree", Buffer.from("tree")],
    ["/items/$d$slug", Buffer.from([128, 0])],
  ]),
});

const data = (body: string, revalidate = 60) => ({
  kind: "FETCH",
  data: { headers: {}, body, url: "http://upstream/" },
  revalidate,
});
const fetchContext = (tags: string[] = [], softTags: string[] = []) => ({ kind: "FETCH", tags, softTags });
const fetchTerms = (...tags: string[]) => ({ fetchCache: true, tags });

/** The text of a page or of data, and whether Next considers it stale. */
async function look(request: Cache, key: string, context: unknown = pageContext): Promise<unknown> {
  const entry = await request.get(key, context);
  if (entry === null) return null;
  const value = entry.value as { html?: string; data?: { body: string } };
  return [value.html ?? value.data?.body, entry.isStale ?? false];
}

describe("values", () => {
  test("of every kind come back unchanged in another process: bytes are Buffers, maps are maps", async () => {
    const [one, other] = [requests(caches.open()), requests(caches.open())];
    const routeHandler = {
      kind: "APP_ROUTE",
      body: Buffer.from([0, 255]),
      status: 201,
      headers: { "x-a": "1" },
    };
    const legacy = {
      kind: "PAGES",
      html: "<p/>",
      pageData: { props: { at: 1 } },
      headers: undefined,
      status: undefined,
    };
    const redirect = { kind: "REDIRECT", props: { pageProps: { __N_REDIRECT: "/" } } };
    for (const value of [page("a", "t"), routeHandler, legacy, redirect, null]) {
      const key = `/${randomUUID()}`;
      await one().set(key, value, stored(60, 120));
      const found = await other().get(key, pageContext);
      expect(found?.value).toEqual(value);
      expect(found?.cacheControl).toEqual({ revalidate: 60, expire: 120 });
      const { rscData, segmentData, body } = (found?.value ?? {}) as Record<string, unknown>;
      for (const bytes of [rscData, body, ...((segmentData as Map<string, unknown>)?.values() ?? [])]) {
        expect(bytes === undefined || Buffer.isBuffer(bytes)).toBe(true);
      }
    }
  });

  test("of fetch are shared with other processes, and gone when Next removes them", async () => {
    const [one, other] = [requests(caches.open()), requests(caches.open())];
    await one().set("hash", data("body"), fetchTerms("t"));
    expect(await look(other(), "hash", fetchContext(["t"]))).toEqual(["body", false]);
    await one().set("hash", null, fetchTerms());
    expect(await look(other(), "hash", fetchContext(["t"]))).toBeNull();
  });

  test("that are images do not collide with pages of the same key", async () => {
    const { cache } = memoryCache();
    const handler = handlers(cache)();
    const image = {
      kind: "IMAGE",
      etag: "e",
      upstreamEtag: "u",
      buffer: Buffer.from([1]),
      extension: "webp",
      revalidate: 60,
    };
    await handler.set("key", image, { kind: "IMAGE" });
    const found = await handler.get("key", { kind: "IMAGE", isFallback: false });
    expect(found?.value).toEqual(image);
    expect(await handler.get("key", pageContext)).toBeNull();
  });

  test("of another build are not served, but fetch data is", async () => {
    const folder = mkdtempSync(join(runFolder(), "next-"));
    const builds = ["one", "two"].map((id) => {
      mkdirSync(join(folder, id, "server"), { recursive: true });
      writeFileSync(join(folder, id, "BUILD_ID"), id);
      return join(folder, id, "server");
    });
    const { cache } = memoryCache();
    const [one, two] = builds.map((dist) => handlers(cache, {}, undefined, dist));
    await one!().set("/page", page("one"), stored(60));
    await one!().set("hash", data("shared"), fetchTerms());
    expect(await one!().get("/page", pageContext)).not.toBeNull();
    expect(await two!().get("/page", pageContext)).toBeNull();
    expect(await two!().get("hash", fetchContext())).not.toBeNull();
  });
});

describe("an age", () => {
  test("past revalidate makes a page stale, past expire it is gone from the store", async () => {
    const { cache, clock } = memoryCache();
    const handler = handlers(cache, { buildId: "b" }, clock)();
    await handler.set("/page", page("a", "t"), stored(60, 100));
    const before = await handler.get("/page", pageContext);
    expect(before).toMatchObject({
      lastModified: clock.now(),
      cacheControl: { revalidate: 60, expire: 100 },
    });
    await clock.advance(99_000);
    expect((await handler.get("/page", pageContext))?.lastModified).toBe(clock.now() - 99_000);
    await clock.advance(1_000);
    expect(await handler.get("/page", pageContext)).toBeNull();
  });

  test.each([
    ["a page that never ages", stored(false), page("a"), 50],
    ["a page without expire", stored(10), page("a"), 15],
    ["a page that expires first", stored(20, 5), page("a"), 20],
    ["data of fetch", fetchTerms(), data("a", 10), 15],
    ["data that outlives the bound", fetchTerms(), data("a", 1_000), 50],
  ])("of %s is bounded in the store", async (_name, terms, value, seconds) => {
    const { cache, clock } = memoryCache();
    const options = { buildId: "b", maxAge: 50, keepStale: 5 };
    const handler = handlers(cache, options, clock)();
    await handler.set("key", value, terms);
    const [key] = await listed(cache.namespace("next").keys());
    expect(await cache.namespace("next").ttl(key!)).toBe(seconds);
  });

  test("that is invalid is rejected immediately", () => {
    const { cache } = memoryCache();
    expect(() => nextCacheHandler(cache, { maxAge: 0 })).toThrow(ConfigError);
    expect(() => nextUseCacheHandler(cache, { maxAgeSeconds: 1 } as NextCacheOptions)).toThrow(/maxAge/);
  });
});

describe("a tag", () => {
  test("that is expired invalidates its pages and data in every process, and no others", async () => {
    const [one, other] = [requests(caches.open()), requests(caches.open())];
    await one().set("/a", page("a", "_N_T_/layout,both,a"), stored(60));
    await one().set("/b", page("b", "_N_T_/layout,both"), stored(60));
    await one().set("hash", data("d"), fetchTerms("a"));
    await other().revalidateTag(["a"]);
    expect(await look(one(), "/a")).toBeNull();
    expect(await look(one(), "hash", fetchContext(["a"]))).toBeNull();
    expect(await look(one(), "/b")).toEqual(["<p>b</p>", false]);
    await other().revalidateTag("_N_T_/layout");
    expect(await look(one(), "/b")).toBeNull();
    await one().revalidateTag([]);
  });

  test("of a path expires data read for that path, but not for others", async () => {
    const request = requests(caches.open());
    await request().set("hash", data("d"), fetchTerms("t"));
    await request().revalidateTag("_N_T_/items/a");
    expect(await look(request(), "hash", fetchContext(["t"], ["_N_T_/layout", "_N_T_/items/a"]))).toBeNull();
    expect(await look(request(), "hash", fetchContext(["t"], ["_N_T_/layout", "_N_T_/b"]))).toEqual([
      "d",
      false,
    ]);
    await request().set("hash", data("new"), fetchTerms("t"));
    expect(await look(request(), "hash", fetchContext(["t"], ["_N_T_/items/a"]))).toEqual(["new", false]);
  });

  test("expires data that was stored without it but is read with it", async () => {
    const request = requests(caches.open());
    await request().set("hash", data("d"), fetchTerms("first"));
    await request().revalidateTag("second");
    expect(await look(request(), "hash", fetchContext(["first", "second"]))).toBeNull();
    expect(await look(request(), "hash", fetchContext(["first"]))).toEqual(["d", false]);
  });

  test.each([[60], [false] as const])(
    "that is revalidated with a profile makes a page of revalidate %s stale in every process, until it is rendered again",
    async (revalidate) => {
      const [one, other] = [requests(caches.open()), requests(caches.open())];
      await one().set("/a", page("a", "t"), stored(revalidate));
      await one().set("hash", data("d", 31_536_000), fetchTerms("t"));
      await other().revalidateTag("t", { expire: 3_600 });
      for (const request of [one, other]) {
        expect(await look(request(), "/a")).toEqual(["<p>a</p>", true]);
        expect(await look(request(), "hash", fetchContext(["t"]))).toEqual(["d", true]);
      }
      await one().set("/a", page("new", "t"), stored(revalidate));
      expect(await look(other(), "/a")).toEqual(["<p>new</p>", false]);
    },
  );

  test("that is revalidated with a profile expires older entries after its duration", async () => {
    const { cache, clock } = memoryCache();
    const request = handlers(cache, { buildId: "b" }, clock);
    const see = async (key: string) => (await request().get(key, pageContext)) !== null;
    await request().set("/a", page("a", "t"), stored(false));
    await clock.advance(1_000);
    await request().revalidateTag("t", { expire: 10 });
    await clock.advance(1_000);
    await request().set("/younger", page("b", "t"), stored(false));
    await clock.advance(8_999);
    expect([await see("/a"), await see("/younger")]).toEqual([true, true]);
    await clock.advance(1);
    expect([await see("/a"), await see("/younger")]).toEqual([false, true]);
    await request().revalidateTag("t", { expire: 0 });
    expect(await see("/younger")).toBe(false);
  });

  test("that is expired during a render keeps that page out, but not one begun later", async () => {
    const { cache, clock } = memoryCache();
    const request = handlers(cache, { buildId: "b" }, clock);
    const slow = request();
    await clock.advance(100);
    await request().revalidateTag("t");
    await clock.advance(100);
    await slow.set("/a", page("old", "t"), stored(60));
    expect(await slow.get("/a", pageContext)).toBeNull();
    await request().set("/a", page("new", "t"), stored(60));
    expect(await slow.get("/a", pageContext)).not.toBeNull();
    const overtaken = request();
    await clock.advance(100);
    await request().revalidateTag("t", { expire: 60 });
    await overtaken.set("/b", page("old", "t"), stored(60));
    expect((await overtaken.get("/b", pageContext))?.lastModified).toBe(clock.now() - 60_001);
  });

  test("that a worker expires with updateTags keeps out a page being rendered by a server", async () => {
    const { cache, clock } = memoryCache();
    const request = handlers(cache, { buildId: "b" }, clock);
    await request().set("/stored", page("old", "t"), stored(60));
    const slow = request();
    await clock.advance(100);
    await nextUseCacheHandler(cache, {}, clock).updateTags(["t"]);
    await slow.set("/rendered", page("old", "t"), stored(60));
    expect([await slow.get("/stored", pageContext), await slow.get("/rendered", pageContext)]).toEqual([
      null,
      null,
    ]);
  });

  test("whose marker was evicted counts as stale, not as fresh", async () => {
    const cache = caches.open();
    const request = requests(cache);
    await request().set("/a", page("a", "t"), stored(60));
    expect(await cache.namespace("next").invalidatePattern("fresh:*")).toBe(1);
    expect(await look(request(), "/a")).toEqual(["<p>a</p>", true]);
  });
});

describe('a "use cache" entry', () => {
  const streamOf = (text: string) => new Response(text).body!;
  const entry = (text: string, facts: Partial<CacheEntry> = {}): Promise<CacheEntry> =>
    Promise.resolve({
      value: streamOf(text),
      tags: ["t"],
      stale: 30,
      timestamp: Date.now(),
      expire: 600,
      revalidate: 60,
      ...facts,
    });
  const textOf = async (found: CacheEntry | undefined) => found && new Response(found.value).text();
  const read = async (handler: CacheHandler, softTags: string[] = []) => {
    const found = await handler.get("key", softTags);
    return found && [await textOf(found), found.revalidate];
  };

  test("is shared with other processes, as a new stream each time, with its metadata", async () => {
    const [one, other] = [nextUseCacheHandler(caches.open()), nextUseCacheHandler(caches.open())];
    expect(await other.get("key", [])).toBeUndefined();
    const { value: _, ...facts } = await entry("text");
    await one.set("key", entry("text", facts));
    for (let time = 0; time < 2; time++) {
      const found = await other.get("key", []);
      expect(await textOf(found)).toBe("text");
      expect(found).toMatchObject(facts);
    }
    expect(await other.getExpiration(["t"])).toBe(Infinity);
    await other.refreshTags();
  });

  test("is expired or made stale by its tags and those of its path", async () => {
    const [one, other] = [nextUseCacheHandler(caches.open()), nextUseCacheHandler(caches.open())];
    const set = () =>
      one.set("key", entry("text", { timestamp: performance.timeOrigin + performance.now() }));
    await set();
    await other.updateTags(["t"]);
    expect(await read(one)).toBeUndefined();
    await set();
    await other.updateTags(["_N_T_/path"]);
    expect(await read(one, ["_N_T_/path"])).toBeUndefined();
    expect(await read(one, ["_N_T_/other"])).toEqual(["text", 60]);
    await other.updateTags(["t"], { expire: 60 });
    expect(await read(one)).toEqual(["text", -1]);
    await set();
    expect(await read(other)).toEqual(["text", 60]);
    await one.updateTags([]);
  });

  test("is compared with its tags by the clock that Next reads", async () => {
    const real = performance.now.bind(performance);
    const ahead = vi.spyOn(performance, "now").mockImplementation(() => real() + 60_000);
    try {
      const handler = nextUseCacheHandler(caches.open());
      const timestamp = performance.timeOrigin + performance.now();
      await handler.set("key", entry("text", { timestamp }));
      await handler.updateTags(["_N_T_/path"]);
      expect(await read(handler, ["_N_T_/path"])).toBeUndefined();
    } finally {
      ahead.mockRestore();
    }
  });

  test("is found under very long keys and keys of binary arguments", async () => {
    const handler = nextUseCacheHandler(caches.open());
    const keys = ["a", "b"].map((end) => `${"x".repeat(70_000)}${end}`);
    keys.push("\ud800", "\udfff", "k\udc00\ud800");
    for (const [at, key] of keys.entries()) await handler.set(key, entry(`text ${at}`));
    for (const [at, key] of keys.entries()) {
      expect(await textOf(await handler.get(key, []))).toBe(`text ${at}`);
    }
    await handler.updateTags(["t"]);
    expect(await handler.get(keys[0]!, [])).toBeUndefined();
  });

  test("is awaited while it is being stored", async () => {
    const handler = nextUseCacheHandler(memoryCache().cache);
    let finish!: (entry: CacheEntry) => void;
    const storing = handler.set("key", new Promise((resolve) => (finish = resolve)));
    const reading = read(handler);
    finish(await entry("text"));
    expect(await reading).toEqual(["text", 60]);
    await storing;
  });

  test("is not stored if incomplete, begun before its tag expired, or without a lifetime", async () => {
    const handler = nextUseCacheHandler(memoryCache().cache);
    const broken = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(1));
        controller.error(new Error("broke off"));
      },
    });
    await handler.set("key", entry("", { value: broken }));
    await handler.set("key", Promise.reject(new Error("never made")));
    expect(await read(handler)).toBeUndefined();
    await handler.set("key", entry("short", { expire: 0 }));
    expect(await read(handler)).toBeUndefined();
    const timestamp = performance.timeOrigin + performance.now() - 1;
    await handler.updateTags(["t"]);
    await handler.set("key", entry("old", { timestamp }));
    expect(await read(handler)).toBeUndefined();
  });
});

test("both handlers treat a failing store as empty; only expiring a tag rejects", async () => {
  const { cache, fail } = failingCache();
  const errors: Error[] = [];
  const options = { onError: (error: Error) => void errors.push(error) };
  const handler = handlers(cache, options)();
  const used = nextUseCacheHandler(cache, options);
  fail();
  expect(await handler.get("/a", pageContext)).toBeNull();
  await handler.set("/a", page("a", "t"), stored(60));
  expect(await used.get("key", [])).toBeUndefined();
  await used.set(
    "key",
    Promise.resolve({
      value: new Response("x").body!,
      tags: [],
      stale: 1,
      timestamp: 1,
      expire: 1,
      revalidate: 1,
    }),
  );
  expect(errors).toHaveLength(4);
  expect(errors.every((error) => error instanceof BackendError)).toBe(true);
  await expect(handler.revalidateTag("t")).rejects.toBeInstanceOf(BackendError);
  await expect(used.updateTags(["t"], { expire: 5 })).rejects.toBeInstanceOf(BackendError);
});
