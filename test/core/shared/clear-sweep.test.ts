// Entries invalidated by clear() are removed in the background: step by step, by comparison, and by a cache that is still open.
import { describe, expect, test } from "vitest";
import type { SharedStore } from "../../../src/core/shared/shared-store.ts";
import { ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import { type ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";
import { openSharedStore } from "../../support/shared-store.ts";

const TERMS = { ttlMs: 3_600_000, staleMs: 0, tags: [] };

interface Stage {
  readonly clock: ManualClock;
  readonly backend: ReferenceBackend;
  readonly store: SharedStore;
  /** Keys under a prefix, live or dead. */
  keysOf(prefix: string): Promise<readonly string[]>;
}

function setUp(scan = true): Stage {
  const clock = new ManualClock();
  const shared = new ReferenceStore(clock, { scan });
  const [backend, onlooker] = [shared.client(), shared.client()];
  const keysOf = async (prefix: string): Promise<readonly string[]> => {
    const keys: string[] = [];
    for await (const batch of onlooker.scan(prefix)) keys.push(...batch.map(({ key }) => key));
    return keys;
  };
  return { clock, backend, store: openSharedStore(backend, clock), keysOf };
}

/** Long enough for all steps in sequence. */
async function pass(clock: ManualClock): Promise<void> {
  for (let step = 0; step < 100; step++) {
    await clock.advance(100);
    await settle();
  }
}

describe("after clear()", () => {
  test("dead entries are removed, here and below, and the library's own records stay", async () => {
    const { clock, store, keysOf } = setUp();
    const space = store.namespace("p");
    const child = space.child("c");
    for (let at = 0; at < 250; at++) await space.set(`k${at}`, at, TERMS);
    await child.set("k", 1, TERMS);
    await child.counters.add("row", [1], 3_600_000);
    await space.clear();
    await space.set("new", 1, TERMS);
    await pass(clock);
    expect(await keysOf("p:")).toEqual(["p:new"]);
    expect(await keysOf("p/c:")).toEqual([]);
    expect(await child.counters.read(["row"])).toEqual([[1]]);
  });

  test("the sweep is paced: the first step comes later, and the next after a pause", async () => {
    const { clock, store, keysOf } = setUp();
    const space = store.namespace("p");
    for (let at = 0; at < 250; at++) await space.set(`k${at}`, at, TERMS);
    await space.clear();
    await clock.advance(900);
    await settle();
    expect(await keysOf("p:")).toHaveLength(250);
    await clock.advance(100);
    await settle();
    const left = (await keysOf("p:")).length;
    expect(left).toBeLessThan(250);
    expect(left).toBeGreaterThan(0);
  });

  test("an entry that is rewritten meanwhile is left alone", async () => {
    const { clock, backend, store } = setUp();
    const space = store.namespace("p");
    await space.set("k", "old", TERMS);
    await space.clear();
    const swap = backend.swap.bind(backend);
    backend.swap = async (key, expected, next) => {
      backend.swap = swap;
      await space.set("k", "new", TERMS);
      return swap(key, expected, next);
    };
    await pass(clock);
    expect((await space.find("k"))?.value).toBe("new");
  });

  test("a cache that is disconnected stops sweeping", async () => {
    const { clock, store, keysOf } = setUp();
    const space = store.namespace("p");
    await space.set("k", 1, TERMS);
    await space.clear();
    await store.disconnect();
    await pass(clock);
    expect(await keysOf("p:")).toEqual(["p:k"]);
  });

  test("a store that would still answer is left alone in its next session, until something is cleared there", async () => {
    const { clock, store, keysOf } = setUp();
    const space = store.namespace("p");
    await space.set("k", 1, TERMS);
    await space.clear();
    store.session++;
    await pass(clock);
    expect(await keysOf("p:")).toEqual(["p:k"]);
    await space.clear();
    await pass(clock);
    expect(await keysOf("p:")).toEqual([]);
  });

  test("a clear() in a new session counts, even if the previous one's removal has not begun", async () => {
    const { clock, store, keysOf } = setUp();
    const space = store.namespace("p");
    await space.set("k", 1, TERMS);
    await space.clear();
    store.session++;
    await space.clear();
    await pass(clock);
    expect(await keysOf("p:")).toEqual([]);
  });

  test("a store that cannot list its keys is left as it is", async () => {
    const { clock, store } = setUp(false);
    const space = store.namespace("p");
    await space.set("k", 1, TERMS);
    await space.clear();
    await pass(clock);
    expect(await space.find("k")).toBeUndefined();
  });
});
