// disconnect() with calls in every phase: pending invalidations are delivered, leases released, no connection left or reopened.
import "../../../src/backends/kv/client.ts";
import { randomInt } from "node:crypto";
import { on } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import { systemClock, type Timer } from "../../../src/core/clock.ts";
import { cacheWithClock, seededRandom } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { Gate } from "../cache/gate.ts";

/** `XCACHE_TEST_SEED=<seed>` draws the same again. */
const seed = Number(process.env.XCACHE_TEST_SEED ?? randomInt(2 ** 31));

let redis: RedisServer;
let memcached: MemcachedServer;
let asking: Socket;
beforeAll(async () => {
  [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
  asking = connect(memcached.port, "127.0.0.1").setEncoding("utf8");
});
afterAll(async () => {
  asking?.destroy();
  await Promise.all([redis?.stop(), memcached?.stop()]);
});

/** Connections to the server, besides the one that asks. */
async function redisConnections(): Promise<number> {
  const list = await redis.cli("CLIENT", "LIST");
  return list.split("\n").filter((line) => line.startsWith("id=")).length - 1;
}

/** Always asked over the same connection: a former one may still be counted after it was closed. */
async function memcachedConnections(): Promise<number> {
  let stats = "";
  asking.write("stats\r\n");
  for await (const [chunk] of on(asking, "data")) {
    stats += chunk;
    if (stats.endsWith("END\r\n")) break;
  }
  return Number(/STAT curr_connections (\d+)/.exec(stats)?.[1]) - 1;
}

const STORES = [
  ["redis", () => redis.url, redisConnections],
  ["memcached", () => memcached.url, memcachedConnections],
] as const;

describe.each(STORES)("on %s", (name, url, connections) => {
  test("no connection is left or reopened, whatever is in progress", async () => {
    const before = await connections();
    const random = seededRandom(seed);
    for (let round = 0; round < 40; round++) {
      const cache = new XCache({
        kvUrl: url(),
        keyPrefix: `${name} ${round % 4}`,
        nearCache: round % 2 === 0,
        operationTimeout: 2,
      });
      if (random() < 0.5) await cache.connect();
      const slow = async (): Promise<number> => {
        for (let turns = Math.floor(random() * 6); turns > 0; turns--) await turn();
        return round;
      };
      const steps: readonly (() => Promise<unknown>)[] = [
        () => cache.getOrSet("a", slow, { tags: ["t"] }),
        () => cache.getOrSet("a", slow, { forceLoad: true }),
        () => cache.getOrSet(`b ${round}`, () => Promise.reject(new Error("down"))),
        () => cache.getOrSet("c", slow, { ttl: 0.001, staleWhileRevalidate: 60 }),
        () => cache.get("a"),
        () => cache.set("a", 1, { tags: ["t"] }),
        () => cache.delete("a"),
        () => cache.invalidateTags(["t"]),
        () => cache.clear(),
        () => cache.health(),
        () => cache.getStats(),
      ];
      const calls: Promise<unknown>[] = [];
      for (let count = Math.floor(random() * 6); count >= 0; count--) {
        const step = steps[Math.floor(random() * steps.length)] as (typeof steps)[number];
        calls.push(step().catch(() => {}));
        for (let turns = Math.floor(random() * 4); turns > 0; turns--) await turn();
      }
      await cache.disconnect();
      await Promise.all(calls);
    }
    await until(async () => (await connections()) <= before, { what: `all have closed, seed ${seed}` });
    for (let turns = 0; turns < 20; turns++) await turn();
    // Not exactly: a connection of the set-up may have been counted before.
    expect(await connections(), `seed ${seed}`).toBeLessThanOrEqual(before);
  });

  test.each(["connected before", "not connected yet"])(
    "calls that are on their way are answered (%s)",
    async (how) => {
      const config = { kvUrl: url(), keyPrefix: `${name} ${how}`, operationTimeout: 5 };
      await using other = new XCache(config);
      await other.set("a", 1);
      const leaving = new XCache(config);
      if (how === "connected before") expect(await leaving.get("a")).toBe(1);
      const calls = [
        leaving.set("k", 2),
        leaving.get("a"),
        leaving.delete("absent"),
        leaving.invalidateTags(["t"]),
        leaving.getMany(["a"]),
      ];
      await leaving.disconnect();
      expect(await Promise.all(calls)).toEqual([undefined, 1, 0, undefined, new Map([["a", 1]])]);
      expect(await other.get("k")).toBe(2);
      await expect(leaving.get("a")).rejects.toMatchObject({ code: "DISCONNECTED" });
    },
  );

  test("the lease of a running load is released, so that other processes do not wait for it", async () => {
    const config = { kvUrl: url(), keyPrefix: `${name} released`, operationTimeout: 5 };
    const leaving = new XCache(config);
    await using staying = new XCache(config);
    await staying.connect();
    const gate = new Gate<string>();
    const abandoned = leaving.getOrSet("k", gate.load);
    await until(() => gate.calls === 1, { what: "it loads" });
    const waiting = staying.getOrSet("k", () => "by another");
    for (let trip = 0; trip < 10; trip++) await staying.exists("k");
    const began = performance.now();
    await leaving.disconnect();
    expect(await waiting).toBe("by another");
    expect(performance.now() - began).toBeLessThan(soon(1_500));
    await gate.finish("too late");
    expect(await abandoned).toBe("too late");
    expect(await staying.get("k")).toBe("by another");
  });

  test("a call that waits for another process's load runs its own load when its cache disconnects", async () => {
    const config = { kvUrl: url(), keyPrefix: `${name} waiting`, operationTimeout: 5 };
    await using holder = new XCache(config);
    const gate = new Gate<string>();
    const held = holder.getOrSet("k", gate.load);
    await until(() => gate.calls === 1, { what: "it loads" });
    const leaving = new XCache(config);
    const waiting = leaving.getOrSet("k", () => "own");
    for (let trip = 0; trip < 10; trip++) await leaving.exists("k");
    await leaving.disconnect();
    expect(await waiting).toBe("own");
    await gate.finish("held");
    expect(await held).toBe("held");
    expect(await holder.get("k")).toBe("held");
  });

  test("no timer is left, not even by a load that ends or begins later", async () => {
    const timers = new Map<object, number>();
    const after = (delayMs: number, run: () => void): Timer => {
      const timer = systemClock.after(delayMs, () => {
        timers.delete(timer);
        run();
      });
      timers.set(timer, delayMs);
      const cancel = (): void => {
        timers.delete(timer);
        timer.cancel();
      };
      return { cancel, hold: (holds) => timer.hold?.(holds) };
    };
    const cache = cacheWithClock(
      {
        kvUrl: url(),
        keyPrefix: `${name} timers`,
        nearCache: true,
        operationTimeout: 5,
        enableMetrics: false,
      },
      { ...systemClock, after },
    );
    await cache.set("k", 1);
    expect(await cache.get("k")).toBe(1);
    await cache.namespace("cleared").clear();
    const gate = new Gate<string>();
    const late = cache.getOrSet("late", gate.load);
    await until(() => gate.calls === 1, { what: "it loads" });
    await cache.disconnect();
    expect(await cache.namespace("new").getOrSet("k", () => "without the store")).toBe("without the store");
    await gate.finish("late");
    expect(await late).toBe("late");
    await turn();
    expect([...timers.values()]).toEqual([]);
  });

  test("it can be connected again", async () => {
    const cache = new XCache({ kvUrl: url(), keyPrefix: `${name} again` });
    for (let round = 0; round < 3; round++) {
      await cache.connect();
      await cache.set("k", round);
      expect(await cache.get("k")).toBe(round);
      await cache.disconnect();
      await expect(cache.get("k")).rejects.toMatchObject({ code: "DISCONNECTED" });
    }
  });
});

test("disconnect() delivers pending invalidations once the store is back", async () => {
  const server = await startRedis({ appendonly: true });
  try {
    const config = { kvUrl: server.url, keyPrefix: "owed", operationTimeout: 1 };
    const owing = new XCache(config);
    await owing.set("k", "old");
    await owing.set("tagged", "old", { tags: ["t"] });
    server.freeze();
    await expect(owing.delete("k")).rejects.toThrow();
    await expect(owing.invalidateTags(["t"])).rejects.toThrow();
    server.thaw();
    await owing.disconnect();
    await using other = new XCache(config);
    expect([await other.get("k"), await other.get("tagged")]).toEqual([undefined, undefined]);
  } finally {
    await server.stop();
  }
});

test("two caches on one backend object: the store stays open for the remaining one, and reopens for a later one", async () => {
  const backend = new KvBackend({ kvUrl: redis.url });
  const one = new XCache({ backend, keyPrefix: "shared backend" });
  const two = new XCache({ backend, keyPrefix: "shared backend" });
  await one.set("k", 1);
  await one.disconnect();
  expect(await two.get("k")).toBe(1);
  await two.disconnect();
  await using three = new XCache({ backend, keyPrefix: "shared backend" });
  expect(await three.get("k")).toBe(1);
});
