// The guarantees of getOrSet, each by its name, on the memory store and on a store with only the backend contract.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { OperationTimeoutError } from "../../../src/core/errors.ts";
import type { LoadContext } from "../../../src/core/options.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { cacheWithClock, ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";

/** A load that a test can finish on demand. */
class Gate<T> {
  calls = 0;
  contexts: LoadContext<T>[] = [];
  #pending: { resolve(value: T): void; reject(error: unknown): void }[] = [];

  readonly load = (context: LoadContext<T>): Promise<T> => {
    this.calls++;
    this.contexts.push(context);
    return new Promise((resolve, reject) => this.#pending.push({ resolve, reject }));
  };

  async finish(value: T): Promise<void> {
    await settle();
    this.#pending.shift()?.resolve(value);
    await settle();
  }

  async fail(error: unknown): Promise<void> {
    await settle();
    this.#pending.shift()?.reject(error);
    await settle();
  }
}

const stores = {
  memory: () => new MemoryBackend(),
  "a store with only the backend contract": () => new ChaosBackend(new MemoryBackend()),
};

describe.each(Object.entries(stores))("on %s", (_name, backend) => {
  let clock: ManualClock;
  let cache: XCache;
  let errors: Error[];

  beforeEach(() => {
    clock = new ManualClock();
    errors = [];
    cache = cacheWithClock({ backend: backend() }, clock);
    cache.on("error", ({ error }) => errors.push(error));
  });
  afterEach(() => cache.disconnect());

  describe("guarantee 1: one load per key between invalidations", () => {
    it("runs one load for 1,000 concurrent callers, and gives each a separate value", async () => {
      const gate = new Gate<{ n: number }>();
      const callers = Array.from({ length: 1_000 }, () => cache.getOrSet("k", gate.load));
      await gate.finish({ n: 1 });
      const values = await Promise.all(callers);
      expect(gate.calls).toBe(1);
      expect(new Set(values).size).toBe(1_000);
      expect(values.every((value) => value.n === 1)).toBe(true);
      (values[0] as { n: number }).n = 99;
      expect(await cache.get("k")).toEqual({ n: 1 });
    });

    it("keeps the loads of different keys apart", async () => {
      const gate = new Gate<string>();
      const callers = ["a", "b", "c"].map((key) => cache.getOrSet(key, gate.load));
      for (const value of ["A", "B", "C"]) await gate.finish(value);
      expect(await Promise.all(callers)).toEqual(["A", "B", "C"]);
      expect(gate.calls).toBe(3);
    });

    it("serves the stored value afterwards and loads again only after the ttl", async () => {
      const gate = new Gate<number>();
      const first = cache.getOrSet("k", gate.load, { ttl: 10 });
      await gate.finish(1);
      await first;
      expect(await cache.getOrSet("k", gate.load, { ttl: 10 })).toBe(1);
      await clock.advance(10_000);
      const second = cache.getOrSet("k", gate.load, { ttl: 10 });
      await gate.finish(2);
      expect(await second).toBe(2);
      expect(gate.calls).toBe(2);
    });
  });

  describe("guarantee 2: an invalidation is never lost to a load in flight", () => {
    const invalidations: Record<string, (cache: XCache) => Promise<unknown>> = {
      delete: (c) => c.delete("k"),
      invalidateTags: (c) => c.invalidateTags("t"),
      invalidatePattern: (c) => c.invalidatePattern("k*"),
      clear: (c) => c.clear(),
    };

    it.each(Object.entries(invalidations))(
      "%s during a load: returned, not stored",
      async (_op, invalidate) => {
        const gate = new Gate<string>();
        const caller = cache.getOrSet("k", gate.load, { tags: ["t"] });
        await settle();
        await invalidate(cache);
        await gate.finish("old");
        expect(await caller).toBe("old");
        expect(await cache.get("k")).toBeUndefined();
      },
    );

    it.each(Object.entries(invalidations))(
      "a call after %s does not join the older load",
      async (_op, invalidate) => {
        const gate = new Gate<string>();
        const before = cache.getOrSet("k", gate.load, { tags: ["t"] });
        await settle();
        await invalidate(cache);
        const after = cache.getOrSet("k", gate.load, { tags: ["t"] });
        await settle();
        expect(gate.calls).toBe(2);
        await gate.finish("old");
        await gate.finish("new");
        expect(await before).toBe("old");
        expect(await after).toBe("new");
        expect(await cache.get("k")).toBe("new");
      },
    );

    it("set during a load wins over the load", async () => {
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load);
      await settle();
      await cache.set("k", "written");
      await gate.finish("loaded");
      expect(await caller).toBe("loaded");
      expect(await cache.get("k")).toBe("written");
    });

    it("tags that the load names itself are covered", async () => {
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load);
      await settle();
      await cache.invalidateTags("late");
      gate.contexts[0]?.setTags(["late"]);
      await gate.finish("old");
      expect(await caller).toBe("old");
      expect(await cache.get("k")).toBeUndefined();
    });

    it("a caller who joined after the invalidation of a tag named later gets a newer load", async () => {
      const gate = new Gate<string>();
      const early = cache.getOrSet("k", gate.load);
      await settle();
      await cache.invalidateTags("late");
      const joined = cache.getOrSet("k", gate.load);
      await settle();
      expect(gate.calls).toBe(1);
      gate.contexts[0]?.setTags(["late"]);
      await gate.finish("old");
      await gate.finish("new");
      expect(await early).toBe("old");
      expect(await joined).toBe("new");
      expect(gate.calls).toBe(2);
    });

    it("an invalidation of another tag, key or pattern has no effect", async () => {
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load, { tags: ["t"] });
      await settle();
      await cache.invalidateTags("other");
      await cache.delete("other");
      await cache.invalidatePattern("other*");
      await cache.namespace("child").clear();
      await gate.finish("value");
      await caller;
      expect(await cache.get("k")).toBe("value");
      expect(await cache.tags("k")).toEqual(["t"]);
    });

    it("a parent's clear reaches a load in a child namespace", async () => {
      const child = cache.namespace("child");
      const gate = new Gate<string>();
      const caller = child.getOrSet("k", gate.load);
      await settle();
      await cache.clear();
      await gate.finish("old");
      await caller;
      expect(await child.get("k")).toBeUndefined();
    });
  });

  describe("guarantee 3: an invalidated entry never comes back", () => {
    it("not under stale_if_error", async () => {
      const options = { ttl: 10, staleIfError: 100, tags: ["t"] };
      await cache.getOrSet("k", () => "old", options);
      await clock.advance(11_000);
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load, options);
      const seen = expect(caller).rejects.toThrow("down");
      await settle();
      await cache.invalidateTags("t");
      await gate.fail(new Error("down"));
      await seen;
    });

    it("not under stale_while_revalidate", async () => {
      const options = { ttl: 10, staleWhileRevalidate: 100 };
      await cache.getOrSet("k", () => "old", options);
      await clock.advance(11_000);
      await cache.delete("k");
      expect(await cache.getOrSet("k", () => "new", options)).toBe("new");
    });

    it("not when the same tag is used again", async () => {
      await cache.set("a", 1, { tags: ["t"] });
      await cache.invalidateTags("t");
      await cache.set("b", 2, { tags: ["t"] });
      expect(await cache.get("a")).toBeUndefined();
      expect(await cache.get("b")).toBe(2);
    });

    it("not when the tag's record would have expired long before", async () => {
      await cache.set("long", 1, { ttl: Number.POSITIVE_INFINITY, tags: ["t"] });
      await cache.set("short", 1, { ttl: 1, tags: ["t"] });
      await clock.jump(1_000 * 3600 * 24 * 400);
      expect(await cache.get("long")).toBe(1);
      await cache.invalidateTags("t");
      await clock.jump(1_000 * 3600 * 24 * 400);
      expect(await cache.get("long")).toBeUndefined();
    });
  });

  describe("guarantee 4: a load's error reaches all its waiters once, unwrapped", () => {
    it("does not make each of them run it again", async () => {
      const gate = new Gate<never>();
      const callers = Array.from({ length: 50 }, () => cache.getOrSet("k", gate.load));
      const settled = Promise.allSettled(callers);
      const failure = new TypeError("database is down");
      await gate.fail(failure);
      const results = await settled;
      expect(gate.calls).toBe(1);
      expect(results.every((result) => result.status === "rejected" && result.reason === failure)).toBe(true);
    });

    it("leaves no trace: the next call loads immediately", async () => {
      const gate = new Gate<string>();
      const failed = expect(cache.getOrSet("k", gate.load)).rejects.toThrow("down");
      await gate.fail(new Error("down"));
      await failed;
      const next = cache.getOrSet("k", gate.load);
      await gate.finish("up");
      expect(await next).toBe("up");
    });

    it("passes on what was thrown, even if it is not an error, and a synchronous throw", async () => {
      await expect(cache.getOrSet("a", () => Promise.reject("text"))).rejects.toBe("text");
      await expect(
        cache.getOrSet("b", () => {
          throw new RangeError("at once");
        }),
      ).rejects.toThrow(RangeError);
    });
  });

  describe("guarantee 5: the lock survives a hard timeout", () => {
    it("a slow load is never duplicated by its own timeout, and its result is stored", async () => {
      const gate = new Gate<string>();
      const options = { hardTimeout: 1 };
      const first = expect(cache.getOrSet("k", gate.load, options)).rejects.toThrow(OperationTimeoutError);
      await clock.advance(1_000);
      await first;
      const second = expect(cache.getOrSet("k", gate.load, options)).rejects.toMatchObject({
        code: "LOAD_TIMEOUT",
      });
      await clock.advance(1_000);
      await second;
      expect(gate.calls).toBe(1);
      await gate.finish("slow");
      expect(await cache.get("k")).toBe("slow");
    });

    it("a failure after the timeout is reported, not an unhandled rejection", async () => {
      const gate = new Gate<string>();
      const caller = expect(cache.getOrSet("k", gate.load, { hardTimeout: 1 })).rejects.toThrow(
        OperationTimeoutError,
      );
      await clock.advance(1_000);
      await caller;
      await gate.fail(new Error("late failure"));
      expect(errors.map((error) => error.message)).toEqual(["late failure"]);
    });
  });

  describe("stale values", () => {
    it("stale_while_revalidate answers immediately and refreshes once in the background", async () => {
      const options = { ttl: 10, staleWhileRevalidate: 60 };
      await cache.getOrSet("k", () => "old", options);
      await clock.advance(20_000);
      const gate = new Gate<string>();
      const answers = await Promise.all([1, 2, 3].map(() => cache.getOrSet("k", gate.load, options)));
      expect(answers).toEqual(["old", "old", "old"]);
      await settle();
      expect(gate.calls).toBe(1);
      await gate.finish("new");
      expect(await cache.get("k")).toBe("new");
    });

    it("an expired value is never served unless requested", async () => {
      await cache.getOrSet("k", () => "old", { ttl: 10 });
      await clock.advance(10_000);
      expect(await cache.get("k")).toBeUndefined();
      await expect(cache.getOrSet("k", () => Promise.reject(new Error("down")))).rejects.toThrow("down");
    });

    it("get never returns a stale value, whatever windows it was stored with", async () => {
      await cache.getOrSet("k", () => "old", { ttl: 10, staleIfError: 100, staleWhileRevalidate: 100 });
      await clock.advance(10_000);
      expect(await cache.get("k")).toBeUndefined();
      expect(await cache.exists("k")).toBe(false);
    });

    it("stale_if_error answers within its window and reports the error", async () => {
      const options = { ttl: 10, staleIfError: 60 };
      const down = (): never => {
        throw new Error("down");
      };
      await cache.getOrSet("k", () => "old", options);
      await clock.advance(30_000);
      expect(await cache.getOrSet("k", down, options)).toBe("old");
      expect(errors.map((error) => error.message)).toContain("down");
      await clock.advance(60_000);
      await expect(cache.getOrSet("k", down, options)).rejects.toThrow("down");
    });

    it("soft timeout returns the stale value while the load continues", async () => {
      const options = { ttl: 10, staleIfError: 60, softTimeout: 1 };
      await cache.getOrSet("k", () => "old", options);
      await clock.advance(20_000);
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load, options);
      await clock.advance(1_000);
      expect(await caller).toBe("old");
      await gate.finish("new");
      expect(await cache.get("k")).toBe("new");
    });

    it("soft timeout without a stale value keeps waiting", async () => {
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load, { softTimeout: 1, hardTimeout: 5 });
      await clock.advance(2_000);
      await gate.finish("value");
      expect(await caller).toBe("value");
    });

    it("the load is given the stale value", async () => {
      const options = { ttl: 10, staleIfError: 60 };
      await cache.getOrSet("k", () => ({ n: 1 }), options);
      await clock.advance(20_000);
      const next = await cache.getOrSet<{ n: number }>(
        "k",
        ({ stale }) => ({ n: (stale?.n ?? 0) + 1 }),
        options,
      );
      expect(next).toEqual({ n: 2 });
    });
  });

  describe("what a load decides", () => {
    it("setTtl and setTags depend on what was loaded", async () => {
      await cache.getOrSet(
        "k",
        ({ setTtl, setTags }) => {
          setTtl(5);
          setTags(["b"]);
          return 1;
        },
        { ttl: 100, tags: ["a"] },
      );
      expect(await cache.ttl("k")).toBe(5);
      expect(await cache.tags("k")).toEqual(["a", "b"]);
      await cache.invalidateTags("b");
      expect(await cache.exists("k")).toBe(false);
    });

    it("skip returns the value without storing it", async () => {
      const value = await cache.getOrSet("k", ({ skip }) => {
        skip();
        return "once";
      });
      expect(value).toBe("once");
      expect(await cache.exists("k")).toBe(false);
    });

    it("undefined is returned and not stored; null is stored", async () => {
      expect(await cache.getOrSet("u", () => undefined)).toBeUndefined();
      expect(await cache.exists("u")).toBe(false);
      expect(await cache.getOrSet("n", () => null)).toBeNull();
      expect(await cache.getOrSet("n", () => "not called")).toBeNull();
    });

    it("forceLoad loads again while the old value stays readable", async () => {
      await cache.set("k", "old");
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load, { forceLoad: true });
      await settle();
      expect(await cache.get("k")).toBe("old");
      await gate.finish("new");
      expect(await caller).toBe("new");
      expect(await cache.get("k")).toBe("new");
    });

    it("the signal aborts when the cache disconnects", async () => {
      const gate = new Gate<string>();
      const caller = cache.getOrSet("k", gate.load);
      await settle();
      expect(gate.contexts[0]?.signal.aborted).toBe(false);
      await cache.disconnect();
      expect(gate.contexts[0]?.signal.aborted).toBe(true);
      await gate.finish("value");
      expect(await caller).toBe("value");
    });
  });
});
