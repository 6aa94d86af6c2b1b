// Health and metrics of a cache on a real server: busy, frozen and recovered.
import { expect, it, onTestFinished } from "vitest";
import { PullCollector } from "../../../src/metrics/prometheus/pull.ts";
import { BuiltInRegistry } from "../../../src/metrics/prometheus/registry.ts";
import { soon } from "../../support/pace.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const TIMEOUT_S = 0.3;
const SLACK_MS = 2_000;
const caches = redisCaches({ operationTimeout: TIMEOUT_S });

it("a cache whose one connection always has calls in flight is healthy", async () => {
  const cache = caches.open({ operationTimeout: 10 });
  expect(await cache.detailedHealthCheck()).toMatchObject({ status: "healthy" });
  let isOver = false;
  const callers = Array.from({ length: 50 }, async (_, at) => {
    while (!isOver) await cache.set(`k${at}`, at);
  });
  const looks = [];
  for (let look = 0; look < 20; look++) looks.push(await cache.detailedHealthCheck());
  isOver = true;
  await Promise.all(callers);
  expect(looks.some(({ connectionPool }) => connectionPool.inUse === 1)).toBe(true);
  expect(looks.flatMap(({ checks }) => checks).filter(({ ok }) => !ok)).toEqual([]);
  expect(looks.every(({ status }) => status === "healthy")).toBe(true);
});

it("a cache on a frozen server is unhealthy within the deadline, names the reason, and recovers by itself", async () => {
  const registry = new BuiltInRegistry();
  const collector = new PullCollector({ registry });
  onTestFinished(() => collector.close());
  const cache = caches.open({
    metrics: collector,
    circuitBreaker: { failureThreshold: 50, resetTimeout: 0.2 },
  });
  await cache.set("k", 1);
  caches.server.freeze();
  const began = performance.now();
  const [detail, page] = await Promise.all([cache.detailedHealthCheck(), collector.metrics()]);
  expect(performance.now() - began).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
  expect(detail).toMatchObject({ status: "unhealthy", kvConnected: false });
  const [store] = detail.checks;
  expect(store).toMatchObject({ name: "store", ok: false });
  expect(store?.detail).not.toBe("");
  expect(page).toContain("xcache_cache_sets_total 1\n");
  expect(page).not.toMatch(/^xcache_cache_keys_count /m);
  caches.server.thaw();
  await until(() => cache.health(), { what: "it is healthy again" });
});
