import { describe, expect, it } from "vitest";
import type { PoolState } from "../../src/core/backend.ts";
import { CircuitBreaker } from "../../src/core/breaker.ts";
import type { Store } from "../../src/core/namespace.ts";
import type { ComprehensiveMetrics } from "../../src/core/stats.ts";
import { checkHealth, detailHealth, poolState, poolUtilization } from "../../src/health/health.ts";
import { Recorder } from "../../src/metrics/recording/recorder.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

interface Parts {
  readonly ping?: () => Promise<void>;
  readonly pool?: () => PoolState;
  readonly breaker?: CircuitBreaker;
  readonly makesRoom?: () => boolean;
}

/** A minimal store for health checks. */
function storeOf({ ping = async () => {}, pool, breaker, makesRoom }: Parts = {}): Store {
  return { ping, breaker, backend: { pool, makesRoom } } as unknown as Store;
}

const metricsOf = (changed: Partial<ComprehensiveMetrics> = {}): ComprehensiveMetrics => ({
  ...new Recorder(new ManualClock()).comprehensive({
    circuitBreakerOpen: false,
    poolUtilization: 0,
    memoryUsage: 0,
  }),
  ...changed,
});

const HEALTHY = { isHealthy: true, latencySeconds: 0.002 };
const newBreaker = (clock = new ManualClock()): CircuitBreaker =>
  new CircuitBreaker({ failureThreshold: 1, resetTimeout: 30 }, clock);

describe("checkHealth", () => {
  it("measures the response time", async () => {
    const clock = new ManualClock();
    const store = storeOf({ ping: () => new Promise((resolve) => clock.after(40, resolve)) });
    const result = checkHealth(store, clock, 1_000);
    await clock.advance(40);
    expect(await result).toEqual({ isHealthy: true, latencySeconds: 0.04 });
    expect(clock.pending).toBe(0);
  });

  it("ends at the limit while the store hangs", async () => {
    const clock = new ManualClock();
    const result = checkHealth(storeOf({ ping: () => new Promise(() => {}) }), clock, 1_000);
    await clock.advance(1_000);
    expect(await result).toMatchObject({
      isHealthy: false,
      latencySeconds: 1,
      error: {
        code: "OPERATION_TIMEOUT",
        operation: "ping",
        message: "the store did not answer ping within 1 s",
      },
    });
  });

  it("reports whatever ping throws, synchronously or not, and never throws itself", async () => {
    const clock = new ManualClock();
    const failure = new Error("refused");
    const thrown = storeOf({
      ping: () => {
        throw failure;
      },
    });
    for (const store of [thrown, storeOf({ ping: () => Promise.reject(failure) })]) {
      expect(await checkHealth(store, clock, 1_000)).toEqual({
        isHealthy: false,
        latencySeconds: 0,
        error: failure,
      });
    }
    const refused = new Error("no redis://ada:hunter2@cache.example.com/0");
    const { error } = await checkHealth(storeOf({ ping: () => Promise.reject(refused) }), clock, 1_000);
    expect(error?.message).toBe("no redis://***@cache.example.com/0");
    const odd = await checkHealth(storeOf({ ping: () => Promise.reject("text") }), clock, 1_000);
    expect(odd.error).toMatchObject({ message: "text" });
  });
});

describe("detailHealth", () => {
  it("is healthy when every check is", async () => {
    const detail = await detailHealth(storeOf({ breaker: newBreaker() }), HEALTHY, metricsOf());
    expect(detail.status).toBe("healthy");
    expect(detail.checks.every(({ ok }) => ok)).toBe(true);
    expect(detail.checks[0]).toEqual({ name: "store", ok: true, detail: "answered in 2.00 ms" });
  });

  it("is unhealthy when the store does not answer, whatever else is fine", async () => {
    const ping = { isHealthy: false, latencySeconds: 1, error: new Error("refused") };
    const detail = await detailHealth(storeOf(), ping, metricsOf());
    expect(detail).toMatchObject({ status: "unhealthy", kvConnected: false });
    expect(detail.checks[0]).toEqual({ name: "store", ok: false, detail: "refused" });
    const silent = await detailHealth(storeOf(), { isHealthy: false, latencySeconds: 1 }, metricsOf());
    expect(silent.checks[0]?.detail).toBe("did not answer");
  });

  it("names a reason even for an error without a message", async () => {
    const [coded, plain] = [
      Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }),
      new RangeError(""),
    ];
    const reasons: (string | undefined)[] = [];
    for (const error of [coded, plain]) {
      const ping = { isHealthy: false, latencySeconds: 0, error };
      reasons.push((await detailHealth(storeOf(), ping, metricsOf())).checks[0]?.detail);
    }
    expect(reasons).toEqual(["ECONNREFUSED", "RangeError"]);
  });

  const degrading: [check: string, store: Store, metrics: ComprehensiveMetrics][] = [
    ["error_rate", storeOf(), metricsOf({ errorRate: 0.011, totalOperations: 1_000 })],
    ["connection_pool", storeOf({ pool: () => ({ size: 10, inUse: 10, idle: 0, waiting: 1 }) }), metricsOf()],
    ["memory", storeOf({ breaker: newBreaker() }), metricsOf({ memoryUsage: 0.96 })],
  ];

  it.each(degrading)("is degraded by %s alone, and the checks show it", async (check, store, metrics) => {
    const detail = await detailHealth(store, HEALTHY, metrics);
    expect(detail.status).toBe("degraded");
    expect(detail.checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([check]);
  });

  it("is not degraded up to the limits", async () => {
    const metrics = metricsOf({ errorRate: 0.01, memoryUsage: 0.95 });
    const pool = (): PoolState => ({ size: 10, inUse: 9, idle: 1, waiting: 4 });
    const { status } = await detailHealth(storeOf({ breaker: newBreaker(), pool }), HEALTHY, metrics);
    expect(status).toBe("healthy");
  });

  it("is not degraded by busy connections while no call waits for one", async () => {
    const pool = (): PoolState => ({ size: 1, inUse: 1, idle: 0, waiting: 0 });
    const detail = await detailHealth(storeOf({ pool }), HEALTHY, metricsOf());
    expect(detail.status).toBe("healthy");
    expect(detail.connectionPool).toEqual({ size: 1, inUse: 1, idle: 0, waiting: 0, utilization: 1 });
  });

  it("is degraded by an open breaker, with the times of opening and of the next probe", async () => {
    const clock = new ManualClock(Date.UTC(2026, 5, 1));
    const breaker = newBreaker(clock);
    breaker.fail(breaker.enter("get"));
    const detail = await detailHealth(storeOf({ breaker }), HEALTHY, metricsOf());
    expect(detail.status).toBe("degraded");
    expect(detail.circuitBreaker).toEqual({
      state: "open",
      failures: 1,
      openedAt: "2026-06-01T00:00:00.000Z",
      nextProbeAt: "2026-06-01T00:00:30.000Z",
    });
  });

  it("is not degraded by a full store that evicts: that is its job", async () => {
    const store = storeOf({ breaker: newBreaker(), makesRoom: () => true });
    const { status } = await detailHealth(store, HEALTHY, metricsOf({ memoryUsage: 1 }));
    expect(status).toBe("healthy");
  });

  it("waits for the first memory usage reading, within what the ping has left of operation_timeout", async () => {
    const spent: number[] = [];
    const firstMemoryUsage = async (spentMs: number): Promise<number> => {
      spent.push(spentMs);
      return 0.96;
    };
    const store = Object.assign(storeOf({ breaker: newBreaker() }), { firstMemoryUsage });
    const detail = await detailHealth(store, HEALTHY, metricsOf());
    expect(spent).toEqual([2]);
    expect(detail).toMatchObject({ status: "degraded", performanceMetrics: { memoryUsage: 0.96 } });
    expect(detail.checks.find(({ name }) => name === "memory")).toEqual({
      name: "memory",
      ok: false,
      detail: "96.0 % of the limit in use",
    });
  });

  it("does not ask a store that did not answer the ping", async () => {
    const store = Object.assign(storeOf(), { firstMemoryUsage: () => new Promise<number>(() => {}) });
    const detail = await detailHealth(store, { isHealthy: false, latencySeconds: 1 }, metricsOf());
    expect(detail.status).toBe("unhealthy");
  });
});

describe("poolUtilization", () => {
  it("is the share that accepts no more calls, or the share in use if only that is known", () => {
    expect(poolUtilization({ size: 0, inUse: 0, idle: 0, waiting: 0 })).toBe(0);
    expect(poolUtilization({ size: 4, inUse: 3, idle: 1, waiting: 0 })).toBe(0.75);
    expect(poolUtilization({ size: 4, inUse: 4, idle: 0, waiting: 0, full: 0 })).toBe(0);
    expect(poolUtilization({ size: 4, inUse: 1, idle: 3, waiting: 9, full: 2 })).toBe(0.5);
    expect(poolUtilization({ size: 1, inUse: 3, idle: 0, waiting: 0 })).toBe(1);
  });
});

describe("poolState", () => {
  it("is all zeros for a backend without a pool or without figures", () => {
    const zeros = { size: 0, inUse: 0, idle: 0, waiting: 0 };
    expect(poolState(storeOf())).toEqual(zeros);
    const broken = storeOf({
      pool: () => {
        throw new Error("no");
      },
    });
    expect(poolState(broken)).toEqual(zeros);
  });
});
