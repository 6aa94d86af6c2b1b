// Large values over a slow network, and more calls at once than a connection carries: arriving data prevents a timeout.
import { describe, expect, it } from "vitest";
import { OperationTimeoutError } from "../../../src/core/errors.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

const MB = 1024 * 1024;
const SPEED = 5 * MB;

const caches = redisCaches({ circuitBreaker: { failureThreshold: 5, resetTimeout: 60 } });

/** A large value, and a server behind a slow network. At 5 MB per second it takes a third longer than operation_timeout. */
async function slowed(bytesPerSecond = SPEED) {
  // The relay passes nothing on while it waits for a processor.
  const operationTimeout = soon(0.6);
  const large = new Uint8Array(1.33 * operationTimeout * SPEED).fill(7);
  // Filling it element by element would take a minute.
  const isLarge = (value: unknown): boolean =>
    value instanceof Uint8Array && Buffer.compare(value, large) === 0;
  const relay = await Relay.start(caches.server.port);
  const direct = caches.open({ operationTimeout });
  await direct.set("large", large);
  await direct.set("small", "small");
  const cache = caches.open({ kvUrl: relay.url, operationTimeout });
  expect(await cache.get("small")).toBe("small");
  relay.throttle(bytesPerSecond);
  return {
    relay,
    cache,
    direct,
    large,
    isLarge,
    timeoutMs: operationTimeout * 1_000,
    [Symbol.asyncDispose]: () => relay.stop(),
  };
}

describe("a value that takes longer than operation_timeout", () => {
  it("is read as long as its bytes arrive, and so are the values behind it", async () => {
    await using scene = await slowed();
    const reading = timed(scene.cache.get<Uint8Array>("large"));
    const beside: Promise<unknown>[] = [];
    const timer = setInterval(() => beside.push(scene.cache.get("small")), 20);
    const { ms, outcome } = await reading;
    clearInterval(timer);
    expect(scene.isLarge(outcome)).toBe(true);
    expect(ms).toBeGreaterThan(scene.timeoutMs);
    expect(beside.length).toBeGreaterThan(5);
    for (const small of await Promise.all(beside)) expect(small).toBe("small");
  });

  it("is written as long as its bytes are accepted, and so are the values behind it", async () => {
    await using scene = await slowed();
    const writing = timed(scene.cache.set("written", scene.large));
    const beside = Array.from({ length: 10 }, (_, at) => scene.cache.set(`beside-${at}`, at));
    expect(await writing).toMatchObject({ outcome: undefined });
    await Promise.all(beside);
    expect(scene.isLarge(await scene.direct.get("written"))).toBe(true);
  });

  it("fails after operation_timeout when its bytes stop", async () => {
    await using scene = await slowed();
    const reading = timed(scene.cache.get("large"));
    await until(() => scene.relay.passedBytes > MB, { what: "a part of it has arrived" });
    scene.relay.silence();
    const stopped = performance.now();
    expect((await reading).outcome).toBeInstanceOf(OperationTimeoutError);
    expect(performance.now() - stopped).toBeLessThan(scene.timeoutMs + soon(300));
    scene.relay.restore();
    expect(await scene.cache.get("small")).toBe("small");
  });

  it("fails when it is slower than a megabyte per second", async () => {
    await using scene = await slowed(0.5 * MB);
    const { ms, outcome } = await timed(scene.cache.get("large"));
    expect(outcome).toBeInstanceOf(OperationTimeoutError);
    // operation_timeout, and a second per megabyte.
    expect(ms).toBeLessThan(scene.timeoutMs + (scene.large.length / MB) * 1_000 + soon(1_500));
  });
});

describe("more calls at once than a connection carries", () => {
  /** The highest of some readings of the memory in use. */
  async function highest(work: () => Promise<unknown>): Promise<number> {
    const used = (): number => {
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = used();
    let most = before;
    const timer = setInterval(() => {
      most = Math.max(most, used());
    }, 5);
    await work();
    clearInterval(timer);
    return Math.max(most, used()) - before;
  }

  it("60,000 sets of a kilobyte all succeed", async () => {
    const cache = caches.open({ operationTimeout: soon(1) });
    const value = "x".repeat(1_000);
    await cache.set("first", value);
    const calls = Array.from({ length: 60_000 }, (_, at) => cache.set(`k${at}`, value, { ttl: 60 }));
    const outcomes = await Promise.allSettled(calls);
    const failures = outcomes.filter(({ status }) => status === "rejected");
    expect(failures.slice(0, 3)).toEqual([]);
    expect(await cache.get("k59999")).toBe(value);
  });

  it("large sets succeed or are refused with a reason, in bounded memory, and the breaker stays closed", async () => {
    // Only sets refused at once may fail: none times out within this time, even on a busy machine.
    const cache = caches.open({ operationTimeout: soon(10) });
    const value = new Uint8Array(100_000);
    await cache.set("first", value);
    let outcomes: PromiseSettledResult<void>[] = [];
    const bytes = await highest(async () => {
      const calls = Array.from({ length: 4_000 }, (_, at) => cache.set(`k${at % 100}`, value, { ttl: 60 }));
      outcomes = await Promise.allSettled(calls);
    });
    const reasons = new Set(
      outcomes.flatMap((each) => (each.status === "rejected" ? [(each.reason as Error).message] : [])),
    );
    const stated = /MB of commands already wait to be sent/;
    expect([...reasons].filter((reason) => stated.test(reason))).toHaveLength(1);
    expect([...reasons].filter((reason) => !stated.test(reason))).toEqual([]);
    expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBeGreaterThan(1_000);
    expect(bytes / MB).toBeLessThan(700);
    expect(cache.getComprehensiveMetrics().circuitBreakerOpen).toBe(false);
    await cache.set("afterwards", 1);
  });
});
