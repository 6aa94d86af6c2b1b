// The Apollo cache in a real server: persisted queries, lifetimes, failures.
import { createHash } from "node:crypto";
import { ApolloServer } from "@apollo/server";
import { type KeyValueCache, PrefixingKeyValueCache } from "@apollo/utils.keyvaluecache";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError, ConnectionError } from "../../src/core/errors.ts";
import { type ApolloCacheOptions, apolloCache } from "../../src/ecosystem/apollo.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { redisCaches } from "../support/redis-caches.ts";
import { until } from "../support/until.ts";
import { failingCache } from "./failing-cache.ts";

const caches = redisCaches({ operationTimeout: 10 });

test("it implements Apollo's cache type, for strings and other values", async () => {
  const strings: KeyValueCache = apolloCache(caches.open());
  const objects: KeyValueCache<{ at: Date }> = apolloCache<{ at: Date }>(caches.open(), {
    namespace: "objects",
  });
  expect(await strings.get("key")).toBeUndefined();
  await strings.set("key", "value");
  await objects.set("key", { at: new Date(5) });
  expect(await strings.get("key")).toBe("value");
  expect(await objects.get("key")).toEqual({ at: new Date(5) });
  expect([await strings.delete("key"), await strings.delete("key")]).toEqual([true, false]);
});

test("the ttl is in seconds; null and 0 mean no expiry, none means the cache's default", async () => {
  const { cache, clock } = memoryCache({ defaultTtl: 300 });
  const apollo = apolloCache(cache);
  const space = cache.namespace("apollo");
  await apollo.set("two", "v", { ttl: 2 });
  await apollo.set("ever", "v", { ttl: null });
  await apollo.set("zero", "v", { ttl: 0 });
  await apollo.set("usual", "v");
  expect(await Promise.all(["two", "ever", "zero", "usual"].map((key) => space.ttl(key)))).toEqual([
    2,
    Infinity,
    Infinity,
    300,
  ]);
  await clock.advance(2_000);
  expect(await apollo.get("two")).toBeUndefined();
  for (const ttl of [-1, Number.NaN])
    await expect(apollo.set("wrong", "v", { ttl })).rejects.toBeInstanceOf(ConfigError);
});

test("invalid options are rejected immediately", () => {
  const { cache } = memoryCache();
  expect(() => apolloCache(cache, { ttl: 5 } as ApolloCacheOptions)).toThrow(/"ttl"/);
});

test("clear empties only its own namespace", async () => {
  const { cache } = memoryCache();
  const apollo = apolloCache(cache);
  await cache.set("own", 1);
  await apollo.set("key", "value");
  await apollo.clear();
  expect([await apollo.get("key"), await cache.get("own")]).toEqual([undefined, 1]);
});

test("Apollo's prefixes keep their users separate", async () => {
  const apollo = apolloCache(memoryCache().cache);
  const [a, b] = [new PrefixingKeyValueCache(apollo, "a:"), new PrefixingKeyValueCache(apollo, "b:")];
  await a.set("key", "of a");
  expect([await a.get("key"), await b.get("key"), await apollo.get("a:key")]).toEqual([
    "of a",
    undefined,
    "of a",
  ]);
});

describe("in a server", () => {
  const QUERY = "{ hello }";
  const sha256Hash = createHash("sha256").update(QUERY).digest("hex");

  async function serverOn(cache: KeyValueCache): Promise<(query?: string) => Promise<unknown>> {
    const server = new ApolloServer({
      typeDefs: "type Query { hello: String }",
      resolvers: { Query: { hello: () => "world" } },
      cache,
      stopOnTerminationSignals: false,
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    await server.start();
    onTestFinished(() => server.stop());
    return async (query) => {
      const { body } = await server.executeOperation({
        ...(query === undefined ? {} : { query }),
        extensions: { persistedQuery: { version: 1, sha256Hash } },
      });
      if (body.kind !== "single") throw new Error("expected one result");
      return body.singleResult.data?.hello ?? body.singleResult.errors?.[0]?.extensions?.code;
    };
  }

  test("a persisted query registered with one server is known to another", async () => {
    const one = await serverOn(apolloCache(caches.open()));
    const other = await serverOn(apolloCache(caches.open()));
    expect(await other()).toBe("PERSISTED_QUERY_NOT_FOUND");
    expect(await one(QUERY)).toBe("world");
    // The server answers without waiting for the cache.
    expect(await until(async () => (await other()) === "world", { what: "a known query" })).toBe(true);
  });

  test("a failing store makes queries unknown but does not fail requests", async () => {
    const failing = failingCache();
    const errors: Error[] = [];
    const cache = apolloCache(failing.cache, { onError: (error) => errors.push(error) });
    const ask = await serverOn(cache);
    failing.fail();
    expect(await ask()).toBe("PERSISTED_QUERY_NOT_FOUND");
    expect(errors).toEqual([expect.any(ConnectionError)]);
    expect(await ask(QUERY)).toBe("world");
    await expect(cache.set("key", "value")).rejects.toBeInstanceOf(ConnectionError);
  });
});

test("disconnect closes a cache created from a configuration", async () => {
  const apollo = apolloCache({ kvUrl: "memory://" });
  await apollo.set("key", "value");
  await apollo.disconnect();
  await expect(apollo.set("key", "value")).rejects.toThrow(/disconnect/);
});
