// Expiry in a store that counts whole seconds: never late, and short lifetimes are useful.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import { XCache } from "../../../src/xcache.ts";
import { watchTimers } from "../../support/memcached/timer.ts";
import { type MemcachedRing, startMemcachedRing } from "../../support/memcached.ts";
import { until } from "../../support/until.ts";

let ring: MemcachedRing;
beforeAll(async () => {
  ring = await startMemcachedRing(2);
});
afterAll(() => ring.stop());

interface Opened extends AsyncDisposable {
  readonly cache: XCache;
  readonly backend: MemcachedBackend;
}

/** As a separate process would have it. */
async function open(): Promise<Opened> {
  const backend = new MemcachedBackend({ kvUrl: ring.url });
  const cache = new XCache({ backend, keyPrefix: "expiry" });
  await cache.connect();
  return { cache, backend, [Symbol.asyncDispose]: () => cache.disconnect() };
}

/** Reads until the value is gone; returns when the last successful read began. */
async function lastSeen(cache: XCache, key: string): Promise<number> {
  let last = 0;
  await until(
    async () => {
      const began = performance.now();
      if ((await cache.get(key)) === undefined) return true;
      last = began;
      return false;
    },
    { what: `${key} is gone` },
  );
  return last;
}

const isClose = ({ cache, backend }: Opened): Promise<unknown> =>
  until(async () => (await cache.exists("any")) === false && backend.clockErrorMs() <= 25, {
    what: "the server's time is known closely",
  });

describe("an entry", () => {
  it("is never served after its ttl, by any process, from their very first moment on", async () => {
    using timers = watchTimers(ring.servers);
    await using writer = await open();
    await using reader = await open();
    const names = ["one", "two", "half"];
    const ttls = [1, 2, 1.5];
    const seen = names.map(async (name, at) => {
      await writer.cache.set(name, at, { ttl: ttls[at] as number });
      const stored = performance.now();
      const last = await Promise.all([lastSeen(writer.cache, name), lastSeen(reader.cache, name)]);
      return Math.max(...last) - stored;
    });
    for (const [at, ms] of (await Promise.all(seen)).entries()) {
      expect(ms, names[at]).toBeLessThanOrEqual((ttls[at] as number) * 1_000 + timers.lateMs);
    }
  });

  it("with a stale window is not served as fresh after its ttl, by a cache that has just connected", async () => {
    using timers = watchTimers(ring.servers);
    await using reader = await open();
    await isClose(reader);
    // A cache that connects at the start of a second assumes its middle.
    await until(() => reader.backend.now() % 1_000 < 150, { what: "a second begins" });
    await using writer = await open();
    await writer.cache.getOrSet("stale", () => 1, { ttl: 2, staleIfError: 60 });
    const stored = performance.now();
    expect((await lastSeen(reader.cache, "stale")) - stored).toBeLessThanOrEqual(2_000 + timers.lateMs);
  });

  it("lives for nearly all of its whole seconds once the server's time is known", async () => {
    using timers = watchTimers(ring.servers);
    await using writer = await open();
    await using reader = await open();
    const latest: number[] = [];
    const lives = [1, 2].map((ttl) =>
      until(
        async () => {
          await Promise.all([isClose(writer), isClose(reader)]);
          const began = performance.now();
          await writer.cache.set(`long ${ttl}`, 1, { ttl });
          const stored = performance.now();
          const last = await Promise.all([
            lastSeen(writer.cache, `long ${ttl}`),
            lastSeen(reader.cache, `long ${ttl}`),
          ]);
          latest.push(Math.max(...last) - stored - ttl * 1_000);
          // Both bounds of the time, and a busy machine, where a server's seconds may jump and are determined again.
          return Math.min(...last) - began > ttl * 1_000 - 600;
        },
        { what: `one of ${ttl} s lives long` },
      ),
    );
    await Promise.all(lives);
    expect(Math.max(...latest)).toBeLessThanOrEqual(timers.lateMs);
  });
});
