// How a process treats its failed changes, and loads that it can no longer be notified about.
import { beforeEach, describe, expect, it } from "vitest";
import { ConnectionError } from "../../../src/core/errors.ts";
import { HeldLoad } from "../../../src/testing/contract/held-load.ts";
import { ChaosBackend, cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { type ReferenceOptions, ReferenceStore } from "../../support/reference-backend.ts";

const stores: Readonly<Record<string, ReferenceOptions>> = {
  "a store without push": { push: "none" },
  "a store that pushes": { push: "at once" },
};
const gone = new ConnectionError("gone");

describe.each(Object.entries(stores))("on %s", (_name, options) => {
  let clock: ManualClock;
  let store: ReferenceStore;
  let chaos: ChaosBackend;
  let cache: XCache;
  let other: XCache;

  const open = (backend: ChaosBackend): XCache =>
    cacheWithClock({ backend, keyPrefix: "app", circuitBreaker: { failureThreshold: 1_000 } }, clock);

  beforeEach(() => {
    clock = new ManualClock();
    store = new ReferenceStore(clock, options);
    chaos = new ChaosBackend(store.client(), { clock });
    cache = open(chaos);
    other = open(new ChaosBackend(store.client(), { clock }));
  });

  describe("a failed change takes effect immediately in its own process", () => {
    beforeEach(async () => {
      await cache.set("k", 1, { tags: ["t"] });
      expect(await cache.get("k")).toBe(1);
    });

    it("when invalidateTags fails before the tag's stamp is reached", async () => {
      chaos.drop("write", 1);
      await expect(cache.invalidateTags("t")).rejects.toThrow(ConnectionError);
      expect(await cache.get("k")).toBeUndefined();
      expect(await other.get("k")).toBeUndefined();
    });

    it("when invalidatePattern cannot list the keys", async () => {
      chaos.fail("scan", gone, 1);
      await expect(cache.invalidatePattern("k*")).rejects.toThrow("gone");
      expect(await cache.get("k")).toBeUndefined();
      expect(await other.get("k")).toBeUndefined();
    });

    it("when clear fails", async () => {
      chaos.drop("write", 1);
      await expect(cache.clear()).rejects.toThrow(ConnectionError);
      expect(await cache.get("k")).toBeUndefined();
      expect(await other.get("k")).toBeUndefined();
    });
  });

  /** The load that just began is joined for this long, and then another one starts. */
  async function expectJoinedFor(ms: number, first: HeldLoad<number>, call: Promise<number>): Promise<void> {
    const second = new HeldLoad<number>();
    await clock.advance(ms - 1);
    const joined = cache.getOrSet("k", second.load);
    await clock.advance(0);
    expect(second.runs).toBe(0);
    await clock.advance(1);
    const later = cache.getOrSet("k", second.load);
    await second.started;
    first.finish(1);
    second.finish(2);
    expect(await Promise.all([call, joined, later])).toEqual([1, 1, 2]);
  }

  it("a load that runs without the store is joined for a second, not longer", async () => {
    const load = new HeldLoad<number>();
    chaos.fail("read", gone, 1);
    const call = cache.getOrSet("k", load.load);
    await load.started;
    await expectJoinedFor(1_000, load, call);
  });

  it("a load whose lease cannot be renewed soon accepts no new callers", async () => {
    const load = new HeldLoad<number>();
    const call = cache.getOrSet("k", load.load);
    await load.started;
    chaos.fail("swap", gone);
    await expectJoinedFor(1_500, load, call);
  });

  it("a set that failed because its stamps came too late is not written afterwards", async () => {
    chaos.delay((operation) => (operation === "readMany" || operation === "swap" ? 750 : 0));
    const late = cache.set("k", 1, { tags: ["t"] });
    late.catch(() => {});
    await clock.advance(1_000);
    await expect(late).rejects.toMatchObject({ code: "OPERATION_TIMEOUT" });
    await cache.delete("k");
    await clock.advance(5_000);
    expect(store.keys()).not.toContain("app:k");
  });

  it("a set that waited too long for pending invalidations is not written afterwards", async () => {
    chaos.drop("takeMany", 1);
    await expect(cache.delete("k")).rejects.toThrow(ConnectionError);
    await cache.set("warm", 1);
    chaos.delay((operation) => (operation === "take" ? 1_500 : 0));
    const late = cache.set("k", 1);
    late.catch(() => {});
    await clock.advance(1_000);
    await expect(late).rejects.toMatchObject({ code: "OPERATION_TIMEOUT" });
    await clock.advance(600);
    expect(store.keys()).not.toContain("app:k");
  });

  it("no caller waits for a lease that was acquired too late", async () => {
    const second = new HeldLoad<number>();
    let swaps = 0;
    chaos.delay((operation) => (operation === "swap" && swaps++ === 1 ? 1_500 : 0));
    const call = cache.getOrSet("k", () => 1);
    await clock.advance(1_600);
    expect(await call).toBe(1);
    const later = cache.getOrSet("k", second.load);
    await clock.advance(100);
    expect(second.runs).toBe(1);
    second.finish(2);
    expect(await later).toBe(2);
  });

  it("an invalidation before a load began does not prevent storing it", async () => {
    const [elsewhere, here] = [new HeldLoad<number>(), new HeldLoad<number>()];
    const old = other.getOrSet("k", elsewhere.load, { tags: ["t"] });
    await elsewhere.started;
    const call = cache.getOrSet("k", here.load, { tags: ["t"] });
    await clock.advance(0);
    expect(here.runs).toBe(0);
    // The lease of the other process is no longer useful, so the load begins here.
    await cache.invalidateTags("t");
    await clock.advance(1_000);
    await here.started;
    here.finish(2);
    expect(await call).toBe(2);
    expect(await cache.get("k")).toBe(2);
    elsewhere.finish(1);
    expect(await old).toBe(1);
    expect(await cache.get("k")).toBe(2);
  });
});
