// The reported state of a pool whose connections carry many calls at once.
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

/** A cache and the state of its pool. */
async function watched(config: CacheConfig = {}) {
  const backend = new KvBackend({ kvUrl: caches.server.url });
  const cache = caches.open({ backend, ...config });
  // On a busy machine the first call may take longer than its deadline.
  await until(() => cache.set("k", 1).then(() => true), { what: "the cache works" });
  const utilization = (): number => cache.getComprehensiveMetrics().poolUtilization;
  return { backend, cache, utilization, pool: (): PoolState => backend.pool() };
}

it("with thousands of calls in flight a connection is in use, and accepts more", async () => {
  const { cache, pool, utilization } = await watched();
  caches.server.freeze();
  const calls = Array.from({ length: 5_000 }, () => cache.get("k"));
  await until(() => pool().inUse === 1, { what: "the calls are in flight" });
  expect(pool()).toEqual({ size: 1, inUse: 1, idle: 0, waiting: 0, full: 0 });
  expect(utilization()).toBe(0);
  caches.server.thaw();
  await Promise.all(calls);
  // A command of the connection's own may still be in flight.
  await until(() => pool().inUse === 0, { what: "the connection is idle" });
  expect(pool()).toEqual({ size: 1, inUse: 0, idle: 1, waiting: 0, full: 0 });
});

it("the pool is full only while the server does not accept what is sent", async () => {
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

it("the pool is full while calls wait for a reconnect", async () => {
  const { cache, pool, utilization } = await watched({ operationTimeout: 0.5 });
  caches.server.freeze();
  // The first calls fail with their connection; later ones wait for the next.
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
