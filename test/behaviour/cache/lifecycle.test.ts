import { describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { cacheWithClock, ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { OwnProcess } from "../../support/own-process.ts";
import { ReferenceStore } from "../../support/reference-backend.ts";
import { Gate } from "./gate.ts";
import { listed, memoryCache } from "./memory-cache.ts";

const OPERATIONS: Record<string, (cache: XCache) => Promise<unknown>> = {
  get: (c) => c.get("k"),
  getMany: (c) => c.getMany(["k"]),
  "getMany of nothing": (c) => c.getMany([]),
  set: (c) => c.set("k", 1),
  setMany: (c) => c.setMany({ k: 1 }),
  "setMany of nothing": (c) => c.setMany({}),
  exists: (c) => c.exists("k"),
  delete: (c) => c.delete("k"),
  "delete of nothing": (c) => c.delete([]),
  ttl: (c) => c.ttl("k"),
  tags: (c) => c.tags("k"),
  keys: (c) => listed(c.keys()),
  invalidateTags: (c) => c.invalidateTags("t"),
  "invalidateTags of nothing": (c) => c.invalidateTags([]),
  invalidatePattern: (c) => c.invalidatePattern("*"),
  clear: (c) => c.clear(),
  getStats: (c) => c.getStats(),
  "getStats exact": (c) => c.getStats({ exact: true }),
  fuzzySearch: (c) => c.fuzzySearch("k"),
};

describe("connect", () => {
  it("is optional and may be repeated", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 1);
    await cache.connect();
    await cache.connect();
    expect(await cache.get("k")).toBe(1);
  });

  it("reopens a disconnected cache and its namespaces; memory has kept its entries", async () => {
    const { cache, clock } = memoryCache();
    const child = cache.namespace("child");
    await cache.set("k", 1);
    await child.set("k", 2, { ttl: 10 });
    await cache.disconnect();
    const born = cache.namespace("born while closed");
    await expect(born.get("k")).rejects.toMatchObject({ code: "DISCONNECTED" });
    await clock.advance(10_000);
    await cache.connect();
    expect([await cache.get("k"), await child.get("k")]).toEqual([1, undefined]);
    await born.set("k", 3);
    expect(await born.get("k")).toBe(3);
  });

  it("on a namespace opens the whole cache, since they share the connection", async () => {
    const { cache } = memoryCache();
    const child = cache.namespace("child");
    await child.disconnect();
    await expect(cache.get("k")).rejects.toMatchObject({ code: "DISCONNECTED" });
    await child.connect();
    expect(await cache.get("k")).toBeUndefined();
  });

  it("is overruled by a disconnect while it is in flight", async () => {
    const { cache } = memoryCache();
    for (const begin of ["open", "closed"] as const) {
      if (begin === "closed") await cache.disconnect();
      const connecting = cache.connect();
      await cache.disconnect();
      await connecting.catch(() => {});
      await expect(cache.get("k"), begin).rejects.toMatchObject({ code: "DISCONNECTED" });
      await cache.connect();
    }
  });

  it("has its connection closed again by that disconnect", async () => {
    const chaos = new ChaosBackend(new MemoryBackend());
    const cache = cacheWithClock({ backend: chaos }, new ManualClock());
    await cache.disconnect();
    chaos.hang("connect");
    const seen = expect(cache.connect()).rejects.toMatchObject({ code: "DISCONNECTED" });
    await settle();
    const closed = cache.disconnect();
    chaos.resume();
    await Promise.all([seen, closed]);
    expect(chaos.calls("disconnect")).toBe(2);
  });

  it("waits for a disconnect in flight", async () => {
    const chaos = new ChaosBackend(new MemoryBackend());
    const cache = cacheWithClock({ backend: chaos }, new ManualClock());
    chaos.hang("disconnect");
    const closing = cache.disconnect();
    const opening = cache.connect();
    await settle();
    expect(chaos.calls("connect")).toBe(0);
    chaos.resume();
    await Promise.all([closing, opening]);
    expect(await cache.get("k")).toBeUndefined();
    await cache.disconnect();
  });

  it("rejects within connectTimeout when the store hangs, and the cache stays closed", async () => {
    const clock = new ManualClock();
    const chaos = new ChaosBackend(new MemoryBackend());
    const cache = cacheWithClock({ backend: chaos, connectTimeout: 2 }, clock);
    await cache.disconnect();
    chaos.hang("connect");
    const seen = expect(cache.connect()).rejects.toMatchObject({
      code: "OPERATION_TIMEOUT",
      operation: "connect",
    });
    await clock.advance(2_000);
    await seen;
    await expect(cache.get("k")).rejects.toMatchObject({ code: "DISCONNECTED" });
    chaos.calm();
  });
});

describe("disconnect", () => {
  it.each(Object.entries(OPERATIONS))(
    "%s then rejects with ConnectionError DISCONNECTED",
    async (_name, run) => {
      const { cache } = memoryCache({ enableFuzzy: true });
      const child = cache.namespace("child");
      await cache.disconnect();
      for (const each of [cache, child]) {
        const error = await run(each).catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(ConnectionError);
        expect(error).toMatchObject({ code: "DISCONNECTED", retryable: false });
        expect((error as ConnectionError).hint).toContain("connect()");
      }
    },
  );

  it("is idempotent, even while in flight: each call ends when the store is closed", async () => {
    const clock = new ManualClock();
    const chaos = new ChaosBackend(new MemoryBackend());
    const cache = cacheWithClock({ backend: chaos }, clock);
    chaos.hang("disconnect");
    let ended = 0;
    const calls = [cache.disconnect(), cache.disconnect()].map((call) => call.then(() => ended++));
    await settle();
    expect(ended).toBe(0);
    chaos.resume();
    await Promise.all(calls);
    await cache.disconnect();
    expect(chaos.calls("disconnect")).toBe(1);
  });

  it("takes no longer than the operation timeout when the store hangs", async () => {
    const clock = new ManualClock();
    const chaos = new ChaosBackend(new MemoryBackend());
    const cache = cacheWithClock({ backend: chaos, operationTimeout: 1 }, clock);
    chaos.hang("disconnect");
    const closed = cache.disconnect();
    await clock.advance(1_000);
    await closed;
    chaos.calm();
  });

  it("leaves no timer behind", async () => {
    const { cache, clock } = memoryCache();
    await cache.set("k", 1);
    cache.startMetricsCollection();
    expect(clock.pending).toBeGreaterThan(0);
    await cache.disconnect();
    expect(clock.pending).toBe(0);
  });

  it("getOrSet runs the load anyway, and stores nothing", async () => {
    const { cache, errors } = memoryCache();
    await cache.set("k", "stored");
    await cache.disconnect();
    let runs = 0;
    const load = async (): Promise<{ run: number }> => ({ run: ++runs });
    expect(await cache.getOrSet("k", load)).toEqual({ run: 1 });
    expect(await cache.getOrSet("k", load)).toEqual({ run: 2 });
    expect(errors.map((error) => (error as ConnectionError).code)).toEqual(["DISCONNECTED", "DISCONNECTED"]);
    await cache.connect();
    expect(await cache.get("k")).toBe("stored");
  });

  it("getOrSet still runs one load for concurrent callers, and each gets a separate value", async () => {
    const { cache } = memoryCache();
    await cache.disconnect();
    const gate = new Gate<object>();
    const callers = [cache.getOrSet("k", gate.load), cache.getOrSet("k", gate.load)];
    await gate.finish({});
    const [one, other] = await Promise.all(callers);
    expect(gate.calls).toBe(1);
    expect(one).not.toBe(other);
  });

  it("aborts the signal of a load that began before; one that begins later is not aborted from the start", async () => {
    const { cache } = memoryCache();
    const gate = new Gate<number>();
    const before = cache.getOrSet("a", gate.load);
    await settle();
    await cache.disconnect();
    const after = cache.getOrSet("b", gate.load);
    await settle();
    expect(gate.contexts.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await gate.finish(1);
    await gate.finish(2);
    expect(await Promise.all([before, after])).toEqual([1, 2]);
  });

  it("aborts the signal of a load that begins later for a call made before", async () => {
    const clock = new ManualClock();
    const chaos = new ChaosBackend(new MemoryBackend());
    const cache = cacheWithClock({ backend: chaos, operationTimeout: 1 }, clock);
    cache.on("error", () => {});
    await cache.connect();
    chaos.hang("read");
    const gate = new Gate<number>();
    const calls = [
      cache.getOrSet("a", gate.load),
      cache.getOrSet("b", gate.load, { staleWhileRevalidate: 60 }),
      cache.getOrSet("c", gate.load, { forceLoad: true }),
    ];
    await settle();
    const closed = cache.disconnect();
    await clock.advance(1_000);
    await closed;
    expect(gate.contexts.map(({ signal }) => signal.aborted)).toEqual([true, true, true]);
    for (const at of calls.keys()) await gate.finish(at);
    expect((await Promise.all(calls)).sort()).toEqual([0, 1, 2]);
  });

  it("callers of a load in flight own what they get", async () => {
    const { cache } = memoryCache();
    const gate = new Gate<{ n: number }>();
    const callers = [cache.getOrSet("k", gate.load), cache.getOrSet("k", gate.load)];
    await settle();
    await cache.disconnect();
    await gate.finish({ n: 1 });
    const [one, other] = await Promise.all(callers);
    expect([one, other]).toEqual([{ n: 1 }, { n: 1 }]);
    expect(one).not.toBe(other);
  });

  it("await using disconnects at the end of the block", async () => {
    const clock = new ManualClock();
    let kept: XCache;
    {
      await using cache = cacheWithClock({ backend: new MemoryBackend() }, clock);
      kept = cache;
      await cache.set("k", 1);
    }
    await expect(kept.get("k")).rejects.toMatchObject({ code: "DISCONNECTED" });
    expect(clock.pending).toBe(0);
    await kept[Symbol.asyncDispose]();
  });
});

describe("a method detached from its object", () => {
  it("throws a TypeError immediately instead of answering wrongly", () => {
    const { cache } = memoryCache();
    const { get, set } = cache;
    expect(() => get("k")).toThrow(TypeError);
    expect(() => set.call({} as XCache, "k", 1)).toThrow(TypeError);
  });
});

describe("a process that uses a cache", () => {
  it("exits by itself without disconnect, whatever the cache is waiting for", async () => {
    await using own = new OwnProcess(`
      import { XCache } from "./index.js";
      const cache = new XCache({ kvUrl: "memory://" });
      cache.startMetricsCollection();
      await cache.set("k", 1, { ttl: 1e9, tags: ["t"] });
      await cache.get("k");
      await cache.namespace("n").set("k", 2);
      await cache.health();
      cache.getOrSet("hangs", () => new Promise(() => {})).catch(() => {});
      say("done");
    `);
    expect(await own.ended()).toEqual({ code: 0, signal: null });
    expect([own.words, own.errors]).toEqual([["done"], ""]);
  });
});

describe("a closed cache that is not reopened", () => {
  it("leaves the store, so that nothing keeps retrying", async () => {
    const clock = new ManualClock();
    const backend = new ChaosBackend(new ReferenceStore(clock).client());
    const cache = cacheWithClock({ backend }, clock);
    await cache.connect();
    await cache.disconnect();
    backend.drop("connect", 1);
    await expect(cache.connect()).rejects.toThrow(ConnectionError);
    expect(backend.calls("disconnect")).toBe(2);
    await expect(cache.get("k")).rejects.toMatchObject({ code: "DISCONNECTED" });
  });
});
