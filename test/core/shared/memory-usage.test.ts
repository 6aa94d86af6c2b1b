// How full a shared store is: read in the background, and only on demand.
import { expect, test } from "vitest";
import { ConnectionError } from "../../../src/core/errors.ts";
import type { SharedStore } from "../../../src/core/shared/shared-store.ts";
import { ManualClock, settle } from "../../../src/testing/index.ts";
import { cacheWithClock } from "../../../src/testing/manual-clock.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

/** Answers as configured, and counts the calls. */
class Filling extends ReferenceBackend {
  looks = 0;
  answer: () => Promise<number | undefined> = async () => 0.5;

  memoryUsage(): Promise<number | undefined> {
    this.looks++;
    return this.answer();
  }
}

interface Scene {
  readonly backend: Filling;
  readonly store: SharedStore;
  readonly clock: ManualClock;
  /** What is known after a check that is due. */
  look(): Promise<number>;
}

function scene(): Scene {
  const clock = new ManualClock();
  const backend = new Filling(new ReferenceStore(clock));
  const store = openSharedStore(backend, clock, 1);
  const look = async (): Promise<number> => {
    await clock.advance(10_000);
    store.memoryUsage();
    await settle();
    return store.memoryUsage();
  };
  return { backend, store, clock, look };
}

const never = (): Promise<never> => new Promise(() => {});

test("is 0 until the store has answered, and only asking triggers the question", async () => {
  const { backend, store } = scene();
  await store.connect();
  await settle();
  expect(backend.looks).toBe(0);
  expect(store.memoryUsage()).toBe(0);
  await settle();
  expect(store.memoryUsage()).toBe(0.5);
  expect(backend.looks).toBe(1);
});

test("the store is asked at most once in ten seconds, and not at all while nobody asks", async () => {
  const { backend, store, clock } = scene();
  for (let second = 0; second <= 10; second++) {
    store.memoryUsage();
    store.memoryUsage();
    expect(backend.looks, `after ${second} s`).toBe(second < 10 ? 1 : 2);
    await clock.advance(1_000);
  }
  await clock.advance(3_600_000);
  expect(backend.looks).toBe(2);
  expect(clock.pending).toBe(0);
});

test("is 0 if the store is no longer bounded, or answers with something that is not a ratio", async () => {
  const { backend, look } = scene();
  expect(await look()).toBe(0.5);
  for (const [said, known] of [
    [undefined, 0],
    [0.7, 0.7],
    [Number.NaN, 0],
    [1.2, 1],
    [-1, 0],
  ] as const) {
    backend.answer = async () => said;
    expect(await look(), String(said)).toBe(known);
  }
});

test("a check that fails, immediately or later, changes nothing, throws nothing and does not open the circuit", async () => {
  const { backend, store, look } = scene();
  expect(await look()).toBe(0.5);
  backend.answer = () => Promise.reject(new ConnectionError("gone"));
  expect(await look()).toBe(0.5);
  backend.answer = () => {
    throw new Error("never heard of it");
  };
  expect(await look()).toBe(0.5);
  expect(backend.looks).toBe(3);
  expect(store.breaker).toMatchObject({ state: "closed", failures: 0 });
});

test("a check that hangs is abandoned at the deadline, and the next one counts", async () => {
  const { backend, store, clock, look } = scene();
  backend.answer = never;
  expect(store.memoryUsage()).toBe(0);
  await clock.advance(1_000);
  expect(clock.pending).toBe(0);
  expect(store.breaker.state).toBe("closed");
  backend.answer = async () => 0.9;
  expect(await look()).toBe(0.9);
});

test("the store is not asked while the circuit is open", async () => {
  const { backend, store, clock } = scene();
  store.breaker.fail(store.breaker.enter("get"));
  store.memoryUsage();
  expect(backend.looks).toBe(0);
  await clock.advance(1_000);
  store.breaker.succeed(store.breaker.enter("get"));
  store.memoryUsage();
  expect(backend.looks).toBe(1);
});

test("a store that was not connected is asked as soon as it is", async () => {
  const { backend, store } = scene();
  backend.answer = () => Promise.reject(new ConnectionError("not yet", { code: "DISCONNECTED" }));
  store.memoryUsage();
  await settle();
  backend.answer = async () => 0.3;
  expect(await store.firstMemoryUsage(0)).toBe(0.3);
});

test("a known answer, or one still pending, is discarded with the connection", async () => {
  const { backend, store, clock, look } = scene();
  expect(await look()).toBe(0.5);
  let tell: (fill: number) => void = () => {};
  backend.answer = () =>
    new Promise((resolve) => {
      tell = resolve;
    });
  await clock.advance(10_000);
  expect(store.memoryUsage()).toBe(0.5);
  await store.disconnect();
  const late = tell;
  expect(store.memoryUsage()).toBe(0);
  late(0.8);
  await settle();
  expect(store.memoryUsage()).toBe(0);
  tell(0.2);
  await settle();
  expect(store.memoryUsage()).toBe(0.2);
});

test("the first check is awaited, later ones are not", async () => {
  const { backend, store, clock } = scene();
  expect(await store.firstMemoryUsage(0)).toBe(0.5);
  await clock.advance(10_000);
  backend.answer = never;
  expect(await store.firstMemoryUsage(0)).toBe(0.5);
  expect(backend.looks).toBe(2);
  await clock.advance(1_000);
});

test("a first check is awaited as long as there is time, and no longer", async () => {
  const { backend, store, clock } = scene();
  backend.answer = never;
  let known: number | undefined;
  const waiting = store.firstMemoryUsage(400).then((fill) => {
    known = fill;
  });
  await clock.advance(599);
  expect(known).toBeUndefined();
  await clock.advance(1);
  expect(known).toBe(0);
  await waiting;
  expect(await store.firstMemoryUsage(2_000)).toBe(0);
  await clock.advance(400);
  expect(clock.pending).toBe(0);
});

test("a store that never answers delays a health check by at most the deadline in total", async () => {
  const clock = new ManualClock();
  const backend = new Filling(new ReferenceStore(clock));
  backend.answer = never;
  backend.ping = () => new Promise((resolve) => clock.after(300, resolve));
  const cache = cacheWithClock({ backend, operationTimeout: 1 }, clock);
  const began = clock.now();
  let endedAfter: number | undefined;
  const check = cache.detailedHealthCheck().then((detail) => {
    endedAfter = clock.now() - began;
    return detail;
  });
  await clock.advance(2_000);
  expect(endedAfter).toBe(1_000);
  expect(await check).toMatchObject({ status: "healthy", performanceMetrics: { memoryUsage: 0 } });
  await cache.disconnect();
});

test("a health check shows the memory usage of a cache that was never asked before", async () => {
  const clock = new ManualClock();
  const backend = new Filling(new ReferenceStore(clock));
  backend.answer = async () => 0.97;
  const cache = cacheWithClock({ backend }, clock);
  expect(await cache.detailedHealthCheck()).toMatchObject({
    status: "degraded",
    performanceMetrics: { memoryUsage: 0.97 },
  });
  expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0.97);
  await cache.disconnect();
});

test("a store whose backend cannot report it is not waited for", async () => {
  const clock = new ManualClock();
  const store = openSharedStore(new ReferenceBackend(new ReferenceStore(clock)), clock);
  expect(store.memoryUsage()).toBe(0);
  expect(await store.firstMemoryUsage(0)).toBe(0);
  expect(clock.pending).toBe(0);
});
