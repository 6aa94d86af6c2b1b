import { describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { memoryCache } from "./memory-cache.ts";

describe("on the memory store", () => {
  it("health is true and takes no time", async () => {
    const { cache } = memoryCache();
    expect(await cache.health()).toBe(true);
    expect(await cache.healthCheck()).toEqual({ isHealthy: true, latencySeconds: 0 });
  });

  it("after disconnect it is false with a reason, and does not throw", async () => {
    const { cache } = memoryCache();
    await cache.disconnect();
    expect(await cache.health()).toBe(false);
    const result = await cache.healthCheck();
    expect(result.isHealthy).toBe(false);
    expect(result.error).toBeInstanceOf(ConnectionError);
    expect(result.error).toMatchObject({ code: "DISCONNECTED" });
    expect(await cache.detailedHealthCheck()).toMatchObject({ status: "unhealthy", kvConnected: false });
  });

  it("the detailed record has every part", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    const detail = await cache.detailedHealthCheck();
    expect(detail).toMatchObject({
      status: "healthy",
      kvConnected: true,
      connectionPool: { size: 0, inUse: 0, idle: 0, waiting: 0, utilization: 0 },
      circuitBreaker: { state: "closed", failures: 0, openedAt: null, nextProbeAt: null },
      performanceMetrics: { totalOperations: 1 },
    });
    expect(detail.checks.map(({ name, ok }) => [name, ok])).toEqual([
      ["store", true],
      ["circuit_breaker", true],
      ["error_rate", true],
      ["connection_pool", true],
      ["memory", true],
    ]);
  });

  it("a full store is healthy: being full is normal", async () => {
    const { cache } = memoryCache({}, { maxEntries: 2 });
    await cache.setMany({ a: 1, b: 2, c: 3 });
    expect(await cache.detailedHealthCheck()).toMatchObject({ status: "healthy" });
  });
});

describe("on a store that can fail", () => {
  function chaosCache(): { cache: XCache; chaos: ChaosBackend; clock: ManualClock } {
    const clock = new ManualClock();
    const chaos = new ChaosBackend(new MemoryBackend());
    return { cache: cacheWithClock({ backend: chaos, operationTimeout: 1 }, clock), chaos, clock };
  }

  it("a store that hangs is unhealthy within the deadline, and nothing is left waiting", async () => {
    const { cache, chaos, clock } = chaosCache();
    chaos.hang();
    const checks = Promise.all([cache.health(), cache.healthCheck(), cache.detailedHealthCheck()]);
    await clock.advance(1_000);
    const [healthy, result, detail] = await checks;
    expect(healthy).toBe(false);
    expect(result).toMatchObject({ isHealthy: false, latencySeconds: 1 });
    expect(result.error).toBeInstanceOf(OperationTimeoutError);
    expect(detail).toMatchObject({ status: "unhealthy", kvConnected: false });
    expect(clock.pending).toBe(0);
    chaos.calm();
  });

  it("a store that fails is unhealthy and its message is in the checks", async () => {
    const { cache, chaos } = chaosCache();
    chaos.drop("ping");
    const detail = await cache.detailedHealthCheck();
    expect(detail.status).toBe("unhealthy");
    expect(detail.checks.find(({ name }) => name === "store")).toEqual({
      name: "store",
      ok: false,
      detail: expect.stringContaining("the call was dropped"),
    });
  });

  it("it is healthy again by itself once the store is", async () => {
    const { cache, chaos } = chaosCache();
    chaos.drop("all");
    expect(await cache.health()).toBe(false);
    chaos.calm();
    expect(await cache.health()).toBe(true);
  });

  it("an open circuit breaker is shown, with its times", async () => {
    const { cache, chaos, clock } = chaosCache();
    chaos.drop("all");
    for (let n = 0; n < 5; n++) await cache.get("k").catch(() => {});
    const detail = await cache.detailedHealthCheck();
    expect(detail.circuitBreaker).toEqual({
      state: "open",
      failures: 5,
      openedAt: new Date(clock.now()).toISOString(),
      nextProbeAt: new Date(clock.now() + 30_000).toISOString(),
    });
    expect(detail.performanceMetrics).toMatchObject({ circuitBreakerOpen: true, connectionFailures: 5 });
    expect(detail.status).toBe("unhealthy");
  });

  it("a store that answers but often failed is degraded, and the checks state that", async () => {
    const { cache, chaos } = chaosCache();
    chaos.fail("read", new Error("no"), 2);
    for (let n = 0; n < 20; n++) await cache.get("k").catch(() => {});
    const detail = await cache.detailedHealthCheck();
    expect(detail.status).toBe("degraded");
    expect(detail.checks.filter(({ ok }) => !ok)).toEqual([
      { name: "error_rate", ok: false, detail: "10.0 % of the latest operations failed" },
    ]);
  });

  it("a cache that failed and has not been used since is healthy again after a minute", async () => {
    const { cache, chaos, clock } = chaosCache();
    chaos.fail("read", new Error("no"), 2);
    for (let n = 0; n < 4; n++) await cache.get("k").catch(() => {});
    await clock.advance(59_999);
    expect(await cache.detailedHealthCheck()).toMatchObject({ status: "degraded" });
    await clock.advance(1);
    expect(await cache.detailedHealthCheck()).toMatchObject({
      status: "healthy",
      performanceMetrics: { errorRate: 0, totalOperations: 4 },
    });
  });

  it("a pool that is nearly exhausted is degraded", async () => {
    const backend = Object.assign(new ChaosBackend(new MemoryBackend()), {
      pool: () => ({ size: 10, inUse: 10, idle: 0, waiting: 3 }),
    });
    const cache = cacheWithClock({ backend }, new ManualClock());
    const detail = await cache.detailedHealthCheck();
    expect(detail).toMatchObject({
      status: "degraded",
      connectionPool: { size: 10, inUse: 10, idle: 0, waiting: 3, utilization: 1 },
    });
    expect(detail.checks.find(({ name }) => name === "connection_pool")).toMatchObject({
      ok: false,
      detail: "10 of 10 in use, 3 calls waiting",
    });
  });

  it("a store that answers the ping and then hangs is degraded within the deadline", async () => {
    let questions = 0;
    const backend = Object.assign(new ChaosBackend(new MemoryBackend()), {
      restrictions: () => (questions++ === 0 ? Promise.resolve([]) : new Promise<[]>(() => {})),
      memoryUsage: () => new Promise<number>(() => {}),
    });
    const clock = new ManualClock();
    const cache = cacheWithClock({ backend, operationTimeout: 1 }, clock);
    await cache.connect();
    const asked = cache.detailedHealthCheck();
    await clock.advance(1_000);
    const { status, checks } = await asked;
    expect(status).toBe("degraded");
    expect(checks.filter(({ ok }) => !ok)).toEqual([
      { name: "restrictions", ok: false, detail: "the store did not answer within 1 s" },
    ]);
    expect(questions).toBe(2);
  });

  it("nothing throws, even if the backend's own answers do", async () => {
    const fails = (): never => {
      throw new Error("no answer today");
    };
    const backend = Object.assign(new ChaosBackend(new MemoryBackend()), {
      pool: fails,
      memoryUsage: async () => 1,
      makesRoom: fails,
    });
    const cache = cacheWithClock({ backend }, new ManualClock());
    expect(await cache.health()).toBe(true);
    expect(await cache.detailedHealthCheck()).toMatchObject({ status: "degraded", kvConnected: true });
    expect(cache.getComprehensiveMetrics().poolUtilization).toBe(0);
  });
});
