// Data that a store may lose: single records, everything, or all changes since its last snapshot.
import { beforeEach, describe, expect, it } from "vitest";
import { HeldLoad } from "../../../src/testing/contract/held-load.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { type ReferenceOptions, ReferenceStore } from "../../support/reference-backend.ts";

const stores: Readonly<Record<string, ReferenceOptions>> = {
  "a store without push": { push: "none" },
  "a store that pushes": { push: "at once" },
};

describe.each(Object.entries(stores))("on %s", (_name, options) => {
  let clock: ManualClock;
  let store: ReferenceStore;
  let cache: XCache;

  beforeEach(async () => {
    clock = new ManualClock();
    store = new ReferenceStore(clock, options);
    cache = cacheWithClock({ backend: store.client(), keyPrefix: "app" }, clock);
    await cache.setMany({ a: 1, b: 2 }, { tags: ["tag"] });
    expect((await cache.getMany(["a", "b"])).size).toBe(2);
  });

  it("an evicted entry is a miss and affects no other", async () => {
    store.remove("app:a");
    expect(await cache.get("a")).toBeUndefined();
    expect(await cache.get("b")).toBe(2);
  });

  it.each(["app!n", "app!t:tag"])(
    "with the stamp %s evicted every entry under it is dead for good",
    async (stamp) => {
      expect(store.keys()).toContain(stamp);
      store.remove(stamp);
      expect(await cache.get("a")).toBeUndefined();
      await cache.set("c", 3, { tags: ["tag"] });
      expect(store.keys()).toContain(stamp);
      expect(await cache.get("b")).toBeUndefined();
      expect(await cache.get("c")).toBe(3);
    },
  );

  it("an evicted tag group does not let a tag invalidated during the load be stored", async () => {
    const other = cacheWithClock({ backend: store.client(), keyPrefix: "app" }, clock);
    const held = new HeldLoad<string>();
    const call = cache.getOrSet("k", (context) => {
      context.setTags(["late"]);
      return held.load();
    });
    await held.started;
    await other.invalidateTags("late");
    const groups = store.keys().filter((key) => key.startsWith("app!g:"));
    expect(groups).toHaveLength(64);
    for (const key of groups) store.remove(key);
    held.finish("old");
    expect(await call).toBe("old");
    expect(await cache.get("k")).toBeUndefined();
  });

  it("an emptied store is an empty cache that keeps working", async () => {
    store.flushAll();
    expect((await cache.getMany(["a", "b"])).size).toBe(0);
    await cache.set("a", 3, { tags: ["tag"] });
    expect(await cache.get("a")).toBe(3);
    await cache.invalidateTags("tag");
    expect(await cache.get("a")).toBeUndefined();
  });

  it("after a restart with an old snapshot, locally cached stamps no longer count", async () => {
    const snapshot = store.snapshot();
    await cache.invalidateTags("tag");
    await cache.set("c", 3, { tags: ["tag"] });
    expect(await cache.get("c")).toBe(3);
    const entry = store.snapshot().get("app:c");
    store.restart(snapshot);
    // As if only the entry had been saved: its stamp is no longer the store's.
    if (entry !== undefined) store.put("app:c", entry);
    expect(await cache.get("c")).toBeUndefined();
    await cache.set("c", 4, { tags: ["tag"] });
    expect(await cache.get("c")).toBe(4);
  });
});
