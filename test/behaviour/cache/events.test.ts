import { describe, expect, it } from "vitest";
import type { CacheEvent } from "../../../src/core/events.ts";
import { settle } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { Gate } from "./gate.ts";
import { memoryCache } from "./memory-cache.ts";

const ALL: readonly CacheEvent[] = ["hit", "miss", "set", "delete", "invalidate", "evict", "error", "state"];

/** The events emitted from now on, as [event, details]. */
function heardOn(cache: XCache): unknown[] {
  const heard: unknown[] = [];
  for (const event of ALL) cache.on(event, (details) => heard.push([event, details]));
  return heard;
}

describe("each operation emits what it did", () => {
  it("get and getMany: a hit or a miss per key", async () => {
    const { cache } = memoryCache();
    await cache.set("a", 1);
    const heard = heardOn(cache);
    await cache.get("a");
    await cache.get("b");
    await cache.getMany(["a", "b", "a"]);
    expect(heard).toEqual([
      ["hit", { key: "a" }],
      ["miss", { key: "b" }],
      ["hit", { key: "a" }],
      ["miss", { key: "b" }],
    ]);
  });

  it("getOrSet: a miss and a set when it loads, a hit when it does not", async () => {
    const { cache } = memoryCache();
    const heard = heardOn(cache);
    await cache.getOrSet("k", () => 1, { tags: ["t"] });
    await cache.getOrSet("k", () => 2);
    expect(heard).toEqual([
      ["set", { key: "k", tags: ["t"] }],
      ["miss", { key: "k" }],
      ["hit", { key: "k" }],
    ]);
  });

  it("getOrSet: a miss for every caller, a set for the one load, none for what was not stored", async () => {
    const { cache } = memoryCache();
    const heard = heardOn(cache);
    const gate = new Gate<number>();
    const callers = [cache.getOrSet("k", gate.load), cache.getOrSet("k", gate.load)];
    await gate.finish(1);
    await Promise.all(callers);
    await cache.getOrSet("skipped", ({ skip }) => {
      skip();
      return 1;
    });
    await cache.getOrSet("failed", () => Promise.reject(new Error("down"))).catch(() => {});
    expect(heard).toEqual([
      ["set", { key: "k", tags: [] }],
      ["miss", { key: "k" }],
      ["miss", { key: "k" }],
      ["miss", { key: "skipped" }],
      ["miss", { key: "failed" }],
    ]);
  });

  it("set and setMany: a set per key, with its tags", async () => {
    const { cache } = memoryCache();
    const heard = heardOn(cache);
    await cache.set("a", 1, { tags: ["t"] });
    await cache.setMany([
      ["b", 1],
      ["c", 2],
      ["b", 3],
    ]);
    expect(heard).toEqual([
      ["set", { key: "a", tags: ["t"] }],
      ["set", { key: "b", tags: [] }],
      ["set", { key: "c", tags: [] }],
    ]);
  });

  it("delete: one for every key requested, present or not", async () => {
    const { cache } = memoryCache();
    await cache.set("a", 1);
    const heard = heardOn(cache);
    await cache.delete(["a", "b", "a"]);
    expect(heard).toEqual([
      ["delete", { key: "a" }],
      ["delete", { key: "b" }],
    ]);
  });

  it("invalidateTags, invalidatePattern and clear: one each, with its kind", async () => {
    const { cache } = memoryCache();
    const heard = heardOn(cache);
    await cache.invalidateTags(["t", "u", "t"]);
    await cache.invalidatePattern("user:*");
    await cache.clear();
    expect(heard).toEqual([
      ["invalidate", { tags: ["t", "u"] }],
      ["invalidate", { pattern: "user:*" }],
      ["invalidate", { all: true }],
    ]);
  });

  it("an eviction: the key that left", async () => {
    const { cache } = memoryCache({}, { maxEntries: 1 });
    const gone: string[] = [];
    cache.on("evict", ({ key }) => gone.push(key));
    await cache.set("a", 1);
    await cache.set("b", 1);
    expect(gone).toEqual(["a"]);
  });

  it("disconnect and connect: the state of the connection", async () => {
    const { cache } = memoryCache();
    const child = cache.namespace("child");
    const heard = heardOn(cache);
    const below = heardOn(child);
    await cache.disconnect();
    await cache.disconnect();
    await cache.connect();
    await cache.connect();
    const expected = [
      ["state", { what: "connection", state: "disconnected" }],
      ["state", { what: "connection", state: "connected" }],
    ];
    expect(heard).toEqual(expected);
    expect(below).toEqual(expected);
  });

  it("a failed call emits nothing: its caller gets the error", async () => {
    const { cache } = memoryCache();
    const heard = heardOn(cache);
    await cache.set("", 1).catch(() => {});
    await cache.delete([""]).catch(() => {});
    await cache.invalidatePattern("[").catch(() => {});
    expect(heard).toEqual([]);
  });
});

describe("listeners", () => {
  it("are called in order, once for each time they were added, until they are removed", async () => {
    const { cache } = memoryCache();
    const heard: string[] = [];
    const first = (): void => void heard.push("first");
    const second = (): void => void heard.push("second");
    expect(cache.on("set", first).on("set", second).on("set", first)).toBe(cache);
    await cache.set("k", 1);
    expect(heard.splice(0)).toEqual(["first", "second", "first"]);
    expect(cache.off("set", first)).toBe(cache);
    await cache.set("k", 1);
    expect(heard.splice(0)).toEqual(["first", "second"]);
    cache.off("set", first).off("set", second).off("set", second);
    await cache.set("k", 1);
    expect(heard).toEqual([]);
  });

  it("may throw without harm to the operation or the others, and that is reported", async () => {
    const { cache, errors } = memoryCache();
    const heard: string[] = [];
    cache.on("set", () => {
      throw new Error("broken listener");
    });
    cache.on("set", ({ key }) => heard.push(key));
    await cache.set("k", 1);
    expect(await cache.get("k")).toBe(1);
    expect(heard).toEqual(["k"]);
    expect(errors.map(({ message }) => message)).toEqual(["broken listener"]);
  });

  it("may reject, which is reported as well, and never as an unhandled rejection", async () => {
    const { cache, errors } = memoryCache();
    cache.on("set", async () => {
      await settle();
      throw new Error("broken later");
    });
    cache.on("error", async () => {
      throw new Error("broken error listener");
    });
    await cache.set("k", 1);
    await settle();
    await settle();
    expect(errors.map(({ message }) => message)).toEqual(["broken later"]);
  });

  it("for errors that throw do not call themselves", async () => {
    const { cache } = memoryCache();
    let calls = 0;
    cache.on("error", () => {
      calls++;
      throw new Error("again");
    });
    cache.on("set", () => {
      throw new Error("first");
    });
    await cache.set("k", 1);
    expect(calls).toBe(1);
  });

  it("may call the cache: their calls count like any other", async () => {
    const { cache } = memoryCache({}, { maxEntries: 2 });
    cache.on("miss", ({ key }) => void cache.set(key, "from the listener"));
    cache.on("evict", ({ key }) => {
      if (!key.startsWith("copy of ")) void cache.set(`copy of ${key}`, 1);
    });
    expect(await cache.get("a")).toBeUndefined();
    expect(await cache.get("a")).toBe("from the listener");
    for (const key of ["b", "c", "d"]) await cache.set(key, 1);
    expect((await cache.getStats({ exact: true })).totalKeys).toBe(2);
  });

  it("may change the tags they are given without changing anything stored", async () => {
    const { cache } = memoryCache();
    cache.on("set", ({ tags }) => (tags as string[]).push("late"));
    await cache.set("none", 1, { tags: [] });
    await cache.set("one", 1, { tags: ["a"] });
    await cache.getOrSet("loaded", () => 1, { tags: ["a"] });
    expect(await Promise.all(["none", "one", "loaded"].map((key) => cache.tags(key)))).toEqual([
      [],
      ["a"],
      ["a"],
    ]);
    await cache.set("without", 1);
    await cache.set("again", 1);
    expect([await cache.tags("without"), await cache.tags("again")]).toEqual([[], []]);
  });

  it("for hits may delete the key, and the caller still gets its value", async () => {
    const { cache } = memoryCache();
    await cache.set("k", "value");
    cache.on("hit", ({ key }) => void cache.delete(key));
    expect(await cache.get("k")).toBe("value");
    expect(await cache.exists("k")).toBe(false);
  });

  it("may remove themselves, or add another, without disturbing the other listeners of the same event", async () => {
    const { cache } = memoryCache();
    const heard: string[] = [];
    const once = (): void => {
      heard.push("once");
      cache.off("set", once);
      cache.on("set", () => heard.push("added"));
    };
    cache.on("set", once).on("set", () => heard.push("always"));
    await cache.set("k", 1);
    expect(heard.splice(0)).toEqual(["once", "always"]);
    await cache.set("k", 1);
    expect(heard).toEqual(["always", "added"]);
  });
});
