// The semantic cache on every store: what several caches that share nothing else store, invalidate and find.
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { SemanticCache } from "../../../src/vector/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { topicEmbedder } from "./topics.ts";

const RESET = "How do I reset my password?";
const RECOVER = "I forgot my login, please";

let redis: RedisServer;
let memcached: MemcachedServer;
const freshFolder = freshFolders();
const folder = freshFolder();
const memory = new MemoryBackend();
const opened: XCache[] = [];
let tests = 0;

beforeAll(async () => {
  [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
});
afterAll(async () => {
  await Promise.all([redis.stop(), memcached.stop()]);
});
afterEach(async () => {
  tests++;
  for (const cache of opened.splice(0)) await cache.disconnect();
});

const STORES: Readonly<Record<string, () => CacheConfig>> = {
  memory: () => ({ backend: memory }),
  kv: () => ({ kvUrl: redis.url }),
  "kv with a near tier": () => ({ kvUrl: redis.url, nearCache: true }),
  disk: () => ({ kvUrl: pathToFileURL(folder).href }),
  memcached: () => ({ kvUrl: memcached.url }),
};

function open(store: string): { readonly cache: XCache; readonly answers: SemanticCache } {
  const cache = new XCache({ ...STORES[store]!(), keyPrefix: `test-${tests}`, operationTimeout: 10 });
  opened.push(cache);
  return {
    cache,
    answers: new SemanticCache({ cache, embed: topicEmbedder(), namespace: "faq", threshold: 0.9 }),
  };
}

const never = (): never => {
  throw new Error("a load that should not run");
};

describe.each(Object.keys(STORES))("on %s", (store) => {
  const canList = store !== "memcached";

  test("what one cache stores, others find as soon as it is stored", async () => {
    const [one, two] = [open(store), open(store)];
    expect(await two.answers.search(RECOVER)).toEqual([]);
    await one.answers.getOrSet(RESET, () => "by link");
    expect(await two.answers.getOrSet(RECOVER, never)).toBe("by link");
    await one.answers.set("rain", "take an umbrella");
    const found = async (): Promise<unknown[]> =>
      (await two.answers.search("weather")).map(({ value }) => value);
    // The cached part of the journal is known to be outdated when the store's push arrives.
    if (store.includes("near"))
      await until(async () => (await found()).length > 0, { what: "the push arrives" });
    expect(await found()).toEqual(["take an umbrella"]);
  });

  test("an answer that one cache invalidates is no longer served by others", async () => {
    const [one, two] = [open(store), open(store)];
    const ways: readonly (() => Promise<unknown>)[] = [
      () => one.answers.invalidateTags("help"),
      () => one.cache.namespace("faq").delete(RESET),
      () => one.answers.clear(),
      () => one.cache.clear(),
    ];
    for (const invalidate of ways) {
      await one.answers.set(RESET, "by link", { tags: ["help"] });
      expect(await two.answers.get(RECOVER)).toBe("by link");
      await invalidate();
      // With a near tier it may take as long as the store's push.
      if (store.includes("near")) {
        await until(async () => (await two.answers.get(RECOVER)) === undefined, { what: "the push arrives" });
      }
      expect(await two.answers.get(RECOVER)).toBeUndefined();
      expect(await two.answers.search(RECOVER, { threshold: 0 })).toEqual([]);
      expect(await one.answers.get(RECOVER)).toBeUndefined();
    }
  });

  test("an expired answer is not served", async () => {
    const [one, two] = [open(store), open(store)];
    await one.answers.set(RESET, "by link", { ttl: canList ? 0.3 : 1 });
    await until(async () => (await one.answers.get(RECOVER)) === undefined, { what: "it expires" });
    expect(await two.answers.search(RECOVER, { threshold: 0 })).toEqual([]);
  });

  test("a cache that is opened later builds its index from the store", async () => {
    const first = open(store);
    for (let at = 0; at < 150; at++) await first.answers.set(`password ${at}`, at);
    await first.cache.namespace("faq").delete("password 7");
    // Other records are not read.
    await first.cache.set("password", 1);
    await first.cache.namespace("other").set("password", 1);
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const second = open(store);
    await second.answers.ready();
    const found = await second.answers.search("login", { limit: 1_000 });
    if (canList) {
      expect(found).toHaveLength(149);
      expect(warned).not.toHaveBeenCalled();
    } else {
      // The latest announcements are known even so; the missing ones are reported once.
      expect(found).toHaveLength(149);
      await second.answers.search("login");
      expect(warned).toHaveBeenCalledTimes(1);
      expect(warned.mock.calls[0]![0]).toContain("cannot list keys");
    }
    warned.mockRestore();
  });

  test("a cache that missed many announcements lists the store", async () => {
    const [one, two] = [open(store), open(store)];
    await two.answers.ready();
    let ahead = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + ahead };
    const slow = new SemanticCache({
      cache: two.cache,
      embed: topicEmbedder(),
      namespace: "faq",
      threshold: 0.9,
      clock,
    });
    await slow.ready();
    await one.answers.set(RESET, "by link");
    for (let at = 0; at < 30; at++) {
      await Promise.all(
        Array.from({ length: 10 }, (_, each) => one.answers.set(`invoice ${at}-${each}`, at)),
      );
    }
    ahead = 20_000;
    const found = await slow.search(RECOVER);
    expect(found.map(({ value }) => value)).toEqual(canList ? ["by link"] : []);
  });
});

test("an answer that another program damaged in the store is skipped", async () => {
  const { answers, cache } = open("kv");
  await answers.set(RESET, "by link");
  await answers.set("login reset", "by mail");
  await redis.cli("SET", `test-${tests}/faq:${RESET}`, "garbage");
  expect((await answers.search(RECOVER)).map(({ value }) => value)).toEqual(["by mail"]);
  const later = new SemanticCache({ cache, embed: topicEmbedder(), namespace: "faq", threshold: 0.9 });
  expect((await later.search(RECOVER)).map(({ value }) => value)).toEqual(["by mail"]);
});

test("a frozen server delays the load of getOrSet by at most the store's and the embedder's timeouts", async () => {
  const server = await startRedis();
  const cache = new XCache({ kvUrl: server.url, operationTimeout: 0.2 });
  const answers = new SemanticCache({ cache, embed: topicEmbedder(), namespace: "faq", threshold: 0.9 });
  await answers.set(RESET, "by link");
  server.freeze();
  try {
    const startedAt = performance.now();
    expect(await answers.getOrSet(RECOVER, () => "loaded")).toBe("loaded");
    expect(performance.now() - startedAt).toBeLessThan(soon(5_000));
    expect(answers.getStats().failures).toBeGreaterThan(0);
  } finally {
    server.thaw();
    await cache.disconnect();
    await server.stop();
  }
});
