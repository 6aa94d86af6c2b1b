// What a pool of connections that carry many calls at once says of itself.
import { afterEach, expect, it } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { PoolState } from "../../../src/core/backend.ts";
import { keyedEntry } from "../../../src/testing/contract/sample.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const caches = redisCaches({
  operationTimeout: 10,
  circuitBreaker: { failureThreshold: 10_000, resetTimeout: 0.1 },
});
afterEach(() => caches.server.thaw());

/** A cache, and what the pool below it says. */
async function watched(config: CacheConfig = {}) {
  const backend = new KvBackend({ kvUrl: caches.server.url });
  const cache = caches.open({ backend, ...config });
  // The first call may take longer than it has on a busy machine.
  await until(() => cache.set("k", 1).then(() => true), { what: "the cache works" });
  const utilization = (): number => cache.getComprehensiveMetrics().poolUtilization;
  return { backend, cache, utilization, pool: (): PoolState => backend.pool() };
}

it("with thousands of calls under way a connection is in use, and takes more", async () => {
  const { cache, pool, utilization } = await watched();
  caches.server.freeze();
  const calls = Array.from({ length: 5_000 }, () => cache.get("k"));
  await until(() => pool().inUse === 1, { what: "the calls are under way" });
  expect(pool()).toEqual({ size: 1, inUse: 1, idle: 0, waiting: 0, full: 0 });
  expect(utilization()).toBe(0);
  caches.server.thaw();
  await Promise.all(calls);
  // A question of the connection's own may still be under way.
  await until(() => pool().inUse === 0, { what: "the connection is idle" });
  expect(pool()).toEqual({ size: 1, inUse: 0, idle: 1, waiting: 0, full: 0 });
});

it("it is full while the server does not take what is sent, and no longer", async () => {
  const { backend, pool, utilization } = await watched();
  caches.server.freeze();
  const payload = { format: 0, bytes: new Uint8Array(1_000_000) };
  const writes = Array.from({ length: 32 }, (_, at) =>
    backend.write(keyedEntry(caches.prefix, `big${at}`, { payload })),
  );
  await until(() => pool().full === 1, { what: "the connection is clogged" });
  expect(pool()).toMatchObject({ inUse: 1, waiting: 0 });
  expect(utilization()).toBe(1);
  caches.server.thaw();
  await Promise.all(writes);
  expect(pool().full).toBe(0);
});

it("it is full while calls wait for it to be made again", async () => {
  const { cache, pool, utilization } = await watched({ operationTimeout: 0.5 });
  caches.server.freeze();
  // The first ones are given up with their connection; what is asked then waits for the next.
  await until(
    () => {
      cache.get("k").catch(() => {});
      return pool().waiting > 0;
    },
    { what: "a call waits" },
  );
  expect(pool()).toMatchObject({ size: 1, inUse: 0, full: 1 });
  expect(utilization()).toBe(1);
  caches.server.thaw();
  await until(() => cache.get("k").then((value) => value === 1), { what: "the cache works again" });
  expect(pool()).toMatchObject({ waiting: 0, full: 0 });
});
