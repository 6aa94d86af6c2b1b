// Encryption key functions that hang, return nonsense, or return other keys than before.
import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { failure } from "../../support/opened.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const SECRET = "0123456789 very secret 0123456789";
const OTHER = "another secret 0123456789";

type Encryption = Exclude<CacheConfig["encryption"], false | undefined>;

let redis: RedisServer;
const caches: XCache[] = [];
let errors: Error[] = [];
let run = 0;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
afterEach(async () => {
  for (const cache of caches.splice(0)) await cache.disconnect();
  errors = [];
  run++;
});

function open(encryption: Encryption, config: CacheConfig = {}): XCache {
  const cache = new XCache({
    kvUrl: redis.url,
    keyPrefix: `run${run}`,
    operationTimeout: 2,
    connectTimeout: 0.2,
    enableMetrics: false,
    ...config,
    encryption,
  });
  cache.on("error", ({ error }) => errors.push(error));
  caches.push(cache);
  return cache;
}

/** An entry under a key that the others lack: reading it makes them call their key functions. */
async function stranger(): Promise<void> {
  await open({ keys: { unknown: "yet another secret 0123456789" } }).set("stranger", 1);
}

const never = (): Promise<never> => new Promise(() => {});

test("one that hangs fails within connect_timeout and is called again", async () => {
  let calls = 0;
  const cache = open({ keys: () => (++calls === 1 ? never() : { a: SECRET }) });
  const error = await failure(cache.set("k", 1));
  expect(error).toBeInstanceOf(OperationTimeoutError);
  expect(error.message).toContain("encryption.keys");
  await until(() => cache.set("k", 2).then(() => true), { what: "the keys were asked for again" });
  expect(await cache.get("k")).toBe(2);
  expect(calls).toBe(2);
});

test("one that later hangs or returns nonsense keeps its earlier keys, is reported once in a row, and is called again", async () => {
  await stranger();
  const answers: (() => unknown)[] = [
    () => ({ a: SECRET }),
    never,
    () => "tiny-secret-0123456789",
    () => ({ keys: { a: SECRET, b: OTHER }, use: "b" }),
  ];
  let calls = 0;
  const cache = open({ keys: () => answers[Math.min(calls++, answers.length - 1)]?.() as never });
  await cache.set("k", 1);
  await until(
    async () => {
      expect(await cache.get("k")).toBe(1);
      await cache.get("stranger");
      return calls >= answers.length;
    },
    { what: "it was called again" },
  );
  await cache.set("k", 2);
  await until(async () => (await open({ keys: { b: OTHER } }).get("k")) === 2, {
    what: "the new key is used",
  });
  const reported = errors.filter((error) => error.message.includes("encryption"));
  expect(reported).toEqual([expect.any(OperationTimeoutError)]);
});

test.each([
  ["a secret alone", "tiny-secret-0123456789"],
  ["a list", [SECRET]],
  ["a map", new Map([["a", SECRET]])],
  ["nothing", undefined],
  ["a secret as the id", { keys: { a: SECRET, b: OTHER }, use: SECRET }],
  ["a secret that is too short", { a: "secret-01234" }],
])(
  "one that returns %s makes the store unusable, and no message reveals what it returned",
  async (_, given) => {
    const cache = open({ keys: () => given as never });
    const error = await failure(cache.set("k", 1));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(`${error}\n${inspect(error, { depth: 20, showHidden: true })}`).not.toMatch(/secret[- ]0123/);
    expect(await cache.getOrSet("k", () => "loaded")).toBe("loaded");
  },
);

test("one that returns a new first key does not change how names are hidden", async () => {
  await stranger();
  let handedOut: Record<string, string> = { a: SECRET };
  let calls = 0;
  const asked = (): Record<string, string> => {
    calls++;
    return handedOut;
  };
  const cache = open({ keys: asked, use: "a", hideKeys: true });
  const other = open({ keys: { a: SECRET }, hideKeys: true });
  await cache.set("before", 1);
  // Written under the hidden name of this key.
  const strange = open({ keys: { a: SECRET, c: OTHER }, use: "c", hideKeys: "a" });
  await strange.set("strange", 1);
  handedOut = { b: OTHER, a: SECRET };
  await until(
    async () => {
      await cache.get("strange");
      return calls > 1;
    },
    { what: "it was called again" },
  );
  await other.set("new", 1);
  expect(await cache.get("new")).toBe(1);
  await cache.delete("new");
  expect(await other.get("new")).toBeUndefined();
  // Without the key that hides names it keeps what it has.
  handedOut = { a: OTHER };
  const before = calls;
  await until(
    async () => {
      await cache.get("strange");
      return calls > before;
    },
    { what: "it was called again" },
  );
  await other.set("newer", 1);
  expect(await cache.get("newer")).toBe(1);
  await until(() => errors.some(({ message }) => message.includes("hide_keys")), { what: "it is reported" });
});

test("one that fails at first: an invalidation made meanwhile is delivered without any call", async () => {
  let isAway = false;
  const keys = (): Record<string, string> => {
    if (isAway) throw new Error("the secrets manager is away");
    return { a: SECRET };
  };
  const other = open({ keys: { a: SECRET }, hideKeys: true });
  await other.set("deleted", 1);
  await other.set("tagged", 1, { tags: ["t"] });
  isAway = true;
  const cache = open({ keys, hideKeys: true });
  expect((await failure(cache.delete("deleted"))).message).toContain("is away");
  expect((await failure(cache.invalidateTags("t"))).message).toContain("is away");
  isAway = false;
  await until(async () => (await other.getMany(["deleted", "tagged"])).size === 0, {
    what: "both are delivered",
    timeoutMs: 3_000,
  });
  expect(errors).toEqual([]);
});

test("one is called outside the caller's async context", async () => {
  const context = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const cache = open({
    keys: () => {
      seen.push(context.getStore());
      return { a: SECRET };
    },
  });
  await context.run("a request", () => cache.set("k", 1));
  expect(seen).toEqual([undefined]);
});
