import { describe, expect, test, vi } from "vitest";
import { MemoryBackend, type MemoryBackendOptions } from "../../../src/backends/memory/backend.ts";
import type { MemoryStore } from "../../../src/backends/memory/store.ts";
import { createCodec } from "../../../src/codec/codec.ts";
import type { EntryOptions, Namespace, StoreObserver } from "../../../src/core/namespace.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";

const TERMS: EntryOptions = { ttlMs: 10_000, staleMs: 0, tags: [] };

function open(options?: MemoryBackendOptions): { store: MemoryStore; clock: ManualClock } {
  const clock = new ManualClock();
  return { store: new MemoryBackend(options).store(clock, createCodec()), clock };
}

/** Observes one namespace, or all. */
function observer(
  space?: Namespace,
): StoreObserver & { readonly space?: Namespace; readonly heard: string[] } {
  const heard: string[] = [];
  return {
    ...(space === undefined ? {} : { namespace: space }),
    heard,
    failed: () => {},
    breakerChanged: () => {},
    evicted: (_, key) => heard.push(key),
  };
}

describe("an eviction", () => {
  test("is reported to the observers of its namespace and of all namespaces, and to nobody else", () => {
    const { store } = open({ maxEntries: 1 });
    const [one, other] = [store.namespace("one"), store.namespace("other")];
    const mine = [observer(one), observer(one)];
    const others = Array.from({ length: 50 }, () => observer(other));
    const all = observer();
    for (const each of [...mine, ...others, all]) store.observers.add(each);
    void one.set("a", 1, TERMS);
    void one.set("b", 1, TERMS);
    expect([...mine, all].map(({ heard }) => heard)).toEqual([["a"], ["a"], ["a"]]);
    expect(others.flatMap(({ heard }) => heard)).toEqual([]);
    void other.set("c", 1, TERMS);
    expect([mine[0]?.heard, others[0]?.heard, all.heard]).toEqual([["a", "b"], [], ["a", "b"]]);
  });

  test("is not reported to a removed observer, and once to one that was added twice", () => {
    const { store } = open({ maxEntries: 1 });
    const space = store.namespace("one");
    const [stays, leaves, all] = [observer(space), observer(space), observer()];
    for (const each of [stays, stays, leaves, all]) store.observers.add(each);
    expect(store.observers.size).toBe(3);
    expect([store.observers.delete(leaves), store.observers.delete(leaves)]).toEqual([true, false]);
    void space.set("a", 1, TERMS);
    void space.set("b", 1, TERMS);
    expect([stays.heard, leaves.heard, all.heard]).toEqual([["a"], [], ["a"]]);
    store.observers.clear();
    void space.set("c", 1, TERMS);
    expect([store.observers.size, stays.heard, all.heard]).toEqual([0, ["a"], ["a"]]);
  });

  test("does not visit the other namespaces of a cache", async () => {
    const clock = new ManualClock();
    const cache = cacheWithClock({ backend: new MemoryBackend({ maxEntries: 1 }) }, clock);
    const heard = vi.fn();
    const names = Array.from({ length: 20 }, (_, at) => cache.namespace(`n${at}`));
    for (const [at, each] of names.entries()) each.on("evict", ({ key }) => heard(at, key));
    await names[7]?.set("a", 1);
    await names[3]?.set("b", 1);
    expect(heard.mock.calls).toEqual([[7, "a"]]);
    expect((await names[7]?.getStats())?.totalEvictions).toBe(1);
    expect((await names[3]?.getStats())?.totalEvictions).toBe(0);
    await cache.disconnect();
  });
});

describe("the timer of a store", () => {
  test("runs for a cache that was opened after another one had disconnected", async () => {
    const clock = new ManualClock();
    const backend = new MemoryBackend();
    const first = cacheWithClock({ backend }, clock);
    await first.set("a", 1);
    await first.disconnect();
    expect(clock.pending).toBe(0);
    const second = cacheWithClock({ backend, keyPrefix: "another", enableMetrics: false }, clock);
    await second.set("b", 1, { ttl: 30 });
    expect(clock.pending).toBe(1);
    const store = backend.store(clock, createCodec());
    expect(store.memoryUsage()).toBeGreaterThan(0);
    await clock.advance(400_000);
    expect(store.memoryUsage()).toBe(0);
    await second.disconnect();
    expect(clock.pending).toBe(0);
  });

  test("also reclaims what was left while no cache was open", async () => {
    const { store, clock } = open();
    void store.namespace("one").set("a", 1, TERMS);
    await store.disconnect();
    await clock.advance(60_000);
    expect(store.memoryUsage()).toBeGreaterThan(0);
    store.namespace("two");
    await clock.advance(10_000);
    expect(store.memoryUsage()).toBe(0);
  });
});
