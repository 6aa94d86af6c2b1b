// How full real servers report to be.
import { expect, it } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { opened } from "../../support/memcached/opened.ts";
import {
  freezeMemcached,
  type MemcachedServer,
  startMemcached,
  startMemcachedRing,
  urlOf,
} from "../../support/memcached.ts";
import { failure, item, timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { until } from "../../support/until.ts";

/** Stores `count` entries of a hundred kilobytes. */
async function put(server: MemcachedServer, count: number): Promise<void> {
  await using backend = opened(server.url);
  await backend.writeMany(Array.from({ length: count }, (_, at) => item(`k${at}`, new Uint8Array(100_000))));
}

it("memory usage is the ratio of its memory that a server has filled with items", async () => {
  await using server = await startMemcached({ memoryMb: 8 });
  await using backend = opened(server.url);
  await backend.connect();
  expect(await backend.memoryUsage()).toBeLessThan(0.01);
  await put(server, 20);
  expect(await backend.memoryUsage()).toBeCloseTo((20 * 100_000) / (8 * 1024 ** 2), 1);
  const cache = new XCache({ kvUrl: server.url });
  const { performanceMetrics } = await cache.detailedHealthCheck();
  expect(performanceMetrics.memoryUsage).toBeCloseTo(0.24, 1);
  await cache.disconnect();
});

it("memory usage never exceeds 1", async () => {
  await using server = await startMemcached({ memoryMb: 2 });
  await put(server, 60);
  await using backend = opened(server.url);
  await backend.connect();
  const fill = await backend.memoryUsage();
  expect(fill).toBeGreaterThan(0.3);
  expect(fill).toBeLessThanOrEqual(1);
});

it("memory usage is that of the fullest of several servers, even while another one is down", async () => {
  await using ring = await startMemcachedRing(2, { memoryMb: 8 });
  const [empty, filled] = ring.servers as [MemcachedServer, MemcachedServer];
  await put(filled, 20);
  await using backend = opened(urlOf(ring.servers));
  await backend.connect();
  const both = (await backend.memoryUsage()) ?? 0;
  expect(both).toBeCloseTo(0.24, 1);
  await empty.kill();
  await until(async () => Math.abs(((await backend.memoryUsage()) ?? 0) - both) < 0.01, {
    what: "the other server reports",
  });
});

it("reading memory usage opens no connection to a server, neither before nor after it is used", async () => {
  await using server = await startMemcached();
  await using backend = opened(server.url);
  expect(await failure(backend.memoryUsage())).toMatchObject({ code: "DISCONNECTED" });
  await backend.connect();
  await backend.disconnect();
  expect(await failure(backend.memoryUsage())).toMatchObject({ code: "DISCONNECTED" });
  expect(backend.pool().size).toBe(0);
});

it("a frozen server delays nobody for longer than the deadline", async () => {
  await using server = await startMemcached();
  const cache = new XCache({ kvUrl: server.url, operationTimeout: 0.3 });
  await cache.set("k", 1);
  await freezeMemcached(server);
  expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0);
  const { ms, outcome } = await timed(cache.detailedHealthCheck());
  expect(outcome).toMatchObject({ status: "unhealthy" });
  expect(ms).toBeLessThan(300 + soon(1_500));
  server.thaw();
  await cache.disconnect();
});
