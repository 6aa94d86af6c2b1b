// Lifetimes around a second on a store that counts whole seconds: a value is there right after storing, and gone in time.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { watchTimers } from "../../support/memcached/timer.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { until } from "../../support/until.ts";

const ROUNDS = 50;
const AT_ONCE = 10;
const TTLS = [0.05, 0.2, 0.5, 0.9, 1, 1.5];

let server: MemcachedServer;
beforeAll(async () => {
  server = await startMemcached();
});
afterAll(() => server?.stop());

const config = () => ({ kvUrl: server.url, keyPrefix: "short", enableMetrics: false, operationTimeout: 10 });

/** The calls that store a value. */
const WRITES: readonly (readonly [string, (cache: XCache, key: string, ttl: number) => Promise<unknown>])[] =
  [
    ["set", (cache, key, ttl) => cache.set(key, "stored", { ttl })],
    ["set with tags", (cache, key, ttl) => cache.set(key, "stored", { ttl, tags: [`tag ${key}`] })],
    ["setMany", (cache, key, ttl) => cache.setMany([[key, "stored"]], { ttl })],
    ["getOrSet", (cache, key, ttl) => cache.getOrSet(key, () => "stored", { ttl, tags: [`tag ${key}`] })],
    [
      "getOrSet with a stale window",
      (cache, key, ttl) => cache.getOrSet(key, () => "stored", { ttl, staleIfError: 0.5 }),
    ],
  ];

let seed = 0;
const fails = (): never => {
  throw new Error("no load");
};

describe.each(WRITES)("a value stored by %s", (name, write) => {
  /** On a new connection, when the server's time is known to a second. */
  async function live(round: number, ttl: number): Promise<void> {
    const clock = new ManualClock(undefined, ++seed);
    await using cache = cacheWithClock(config(), clock);
    const key = `${name} ${ttl} ${round}`;
    await write(cache, key, ttl);
    expect(await cache.get(key), key).toBe("stored");
    expect((await cache.getMany([key])).get(key)).toBe("stored");
    expect(await cache.ttl(key)).toBeCloseTo(ttl);
    await clock.advance(ttl * 1_000 - 1);
    expect(await cache.get(key), key).toBe("stored");
    expect(await cache.exists(key)).toBe(true);
    expect(await cache.getOrSet(key, fails)).toBe("stored");
    await clock.advance(1);
    expect(await cache.get(key), key).toBeUndefined();
    expect(await cache.exists(key)).toBe(false);
    expect(await cache.ttl(key)).toBeUndefined();
    if (!name.includes("stale")) return;
    await clock.advance(499);
    expect(await cache.getOrSet(key, fails, { staleIfError: 0.5 })).toBe("stored");
    await clock.advance(2);
    await expect(cache.getOrSet(key, fails, { staleIfError: 0.5 })).rejects.toThrow("no load");
  }

  /** The server counts real seconds and keeps an item for at least one: a slower round proves nothing, and is repeated. */
  async function liveInTime(round: number, ttl: number): Promise<void> {
    const began = performance.now();
    try {
      await live(round, ttl);
    } catch (error) {
      if (performance.now() - began < 1_000) throw error;
      await liveInTime(round + ROUNDS, ttl);
    }
  }

  test.each(TTLS)("for %d s is there for exactly that long in its own process", async (ttl) => {
    for (let from = 0; from < ROUNDS; from += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => liveInTime(from + at, ttl)));
  });
});

test("is still invalidated by its tags", async () => {
  await using cache = cacheWithClock(config(), new ManualClock());
  await cache.set("tagged", 1, { ttl: 0.05, tags: ["gone"] });
  expect(await cache.get("tagged")).toBe(1);
  await cache.invalidateTags("gone");
  expect(await cache.get("tagged")).toBeUndefined();
});

test("is seen by another process as long as both know the server's time, and never after its ttl", async () => {
  const open = async () => {
    const backend = new MemcachedBackend({ kvUrl: server.url });
    const cache = new XCache({ ...config(), backend });
    await cache.connect();
    return { backend, cache, [Symbol.asyncDispose]: () => cache.disconnect() };
  };
  using timers = watchTimers([server]);
  await using writer = await open();
  await using reader = await open();
  for (const { cache, backend } of [writer, reader])
    await until(async () => !(await cache.exists("any")) && backend.clockErrorMs() <= 60, {
      what: "the server's time is known closely",
    });
  const seen = await Promise.all(
    TTLS.map(async (ttl) => {
      const key = `shared ${ttl}`;
      const boundMs = ttl * 1_000 - writer.backend.clockErrorMs() - reader.backend.clockErrorMs();
      const began = performance.now();
      await writer.cache.set(key, ttl, { ttl });
      const stored = performance.now();
      let last = began;
      let gap = 0;
      await until(
        async () => {
          const asked = performance.now();
          const value = await reader.cache.get(key);
          // Its own lifetime ends within a busy machine's pause between two reads.
          gap = performance.now() - last;
          if (value === undefined) return true;
          last = asked;
          return false;
        },
        { what: `${key} is gone` },
      );
      expect(last - stored, key).toBeLessThanOrEqual(ttl * 1_000 + timers.lateMs);
      return last + gap - began > boundMs - 10;
    }),
  );
  expect(seen).toEqual(TTLS.map(() => true));
});
