// ChaosBackend: every fault it can inject, and how a cache handles them.
import { beforeEach, describe, expect, it } from "vitest";
import type { Backend } from "../../src/core/backend.ts";
import {
  BackendError,
  CircuitOpenError,
  ConnectionError,
  OperationTimeoutError,
} from "../../src/core/errors.ts";
import { sampleEntry } from "../../src/testing/contract/sample.ts";
import { ChaosBackend, cacheWithClock, ManualClock, settle } from "../../src/testing/index.ts";
import type { XCache } from "../../src/xcache.ts";
import { ReferenceStore } from "../support/reference-backend.ts";

const FOR_EVER = Number.POSITIVE_INFINITY;

let clock: ManualClock;
let store: ReferenceStore;
let chaos: ChaosBackend;

beforeEach(() => {
  clock = new ManualClock();
  store = new ReferenceStore(clock, { push: "at once" });
  chaos = new ChaosBackend(store.client(), { clock, seed: 7 });
});

const put = (backend: Backend, name: string): Promise<void> =>
  backend.write({ key: `p:${name}`, record: sampleEntry(`p:${name}`), lifetimeMs: FOR_EVER });

/** Whether a promise has settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const mark = (): void => {
    settled = true;
  };
  promise.then(mark, mark);
  await settle();
  return settled;
}

describe("a scripted fault", () => {
  it("delay: a call reaches the store after half the delay and returns after all of it", async () => {
    chaos.delay(100);
    const write = put(chaos, "slow");
    await clock.advance(49);
    expect(store.keys()).toEqual([]);
    await clock.advance(1);
    expect(store.keys()).toEqual(["p:slow"]);
    await clock.advance(49);
    expect(await isSettled(write)).toBe(false);
    await clock.advance(1);
    expect(await isSettled(write)).toBe(true);
    chaos.delay((operation) => (operation === "read" ? 10 : 0));
    await put(chaos, "quick");
    const read = chaos.read("p:quick");
    expect(await isSettled(read)).toBe(false);
    await clock.advance(10);
    expect((await read)?.kind).toBe("entry");
  });

  it("fail: the given number of calls reject with the error and do nothing", async () => {
    const error = new Error("out of memory");
    chaos.fail("write", error, 2);
    await expect(put(chaos, "a")).rejects.toBe(error);
    expect(await chaos.read("p:a")).toBeUndefined();
    await expect(put(chaos, "a")).rejects.toBe(error);
    expect(store.keys()).toEqual([]);
    await put(chaos, "a");
    expect(store.keys()).toEqual(["p:a"]);
  });

  it("drop: calls do not reach the store and reject with ConnectionError", async () => {
    chaos.drop("all");
    await expect(put(chaos, "a")).rejects.toBeInstanceOf(ConnectionError);
    await expect(chaos.ping()).rejects.toBeInstanceOf(ConnectionError);
    expect(store.keys()).toEqual([]);
    chaos.calm();
    await put(chaos, "a");
    expect(store.keys()).toEqual(["p:a"]);
  });

  it("lose: calls are executed and their replies are not delivered", async () => {
    chaos.lose("write", 1);
    await expect(put(chaos, "a")).rejects.toBeInstanceOf(ConnectionError);
    expect(store.keys()).toEqual(["p:a"]);
    chaos.lose("write", 1, "hang");
    const hung = put(chaos, "b");
    expect(await isSettled(hung)).toBe(false);
    expect(store.keys()).toEqual(["p:a", "p:b"]);
    chaos.resume();
    await expect(hung).rejects.toBeInstanceOf(ConnectionError);
  });

  it("hang: calls wait before they reach the store, and continue after resume", async () => {
    chaos.hang("write");
    const write = put(chaos, "a");
    expect(await chaos.read("p:a")).toBeUndefined();
    expect(await isSettled(write)).toBe(false);
    expect(store.keys()).toEqual([]);
    chaos.resume();
    await write;
    expect(store.keys()).toEqual(["p:a"]);
  });

  it("applies to the operation it names, in the order requested", async () => {
    const [first, second] = [new Error("first"), new Error("second")];
    chaos.fail("read", first, 1).fail("all", second, 1);
    await expect(chaos.read("p:a")).rejects.toBe(first);
    await expect(chaos.ping()).rejects.toBe(second);
    await chaos.ping();
  });

  it("reaches every operation, each batch of a scan included", async () => {
    const error = new Error("no");
    const operations: Record<string, () => Promise<unknown>> = {
      connect: () => chaos.connect(),
      disconnect: () => chaos.disconnect(),
      ping: () => chaos.ping(),
      read: () => chaos.read("p:a"),
      readMany: () => chaos.readMany(["p:a"]),
      write: () => put(chaos, "a"),
      writeMany: () => chaos.writeMany([]),
      swap: () => chaos.swap("p:a", undefined, undefined),
      take: () => chaos.take("p:a"),
      takeMany: () => chaos.takeMany(["p:a"]),
      usage: () => chaos.usage("p"),
      scan: async () => {
        for await (const _ of chaos.scan("p"));
      },
    };
    await Promise.all(Array.from({ length: 150 }, (_, at) => put(chaos, `n${at}`)));
    for (const [name, run] of Object.entries(operations)) {
      chaos.fail(name as "read", error, 1);
      await expect(run(), name).rejects.toBe(error);
    }
    const batches = chaos.scan("p")[Symbol.asyncIterator]();
    expect((await batches.next()).value).toHaveLength(100);
    chaos.fail("scan", error, 1);
    await expect(batches.next()).rejects.toBe(error);
  });

  it("is counted: calls includes failed ones", async () => {
    chaos.drop("read", 1);
    await chaos.read("p:a").catch(() => {});
    await chaos.read("p:a");
    await chaos.ping();
    expect([chaos.calls("read"), chaos.calls("ping"), chaos.calls("write"), chaos.calls()]).toEqual([
      2, 1, 0, 3,
    ]);
  });
});

describe("random faults", () => {
  const outcomes = async (seed: number | undefined): Promise<string[]> => {
    const backend = new ChaosBackend(new ReferenceStore(clock).client(), seed === undefined ? {} : { seed });
    backend.random({ drop: 0.2, lose: 0.2 });
    const seen: string[] = [];
    for (let call = 0; call < 200; call++) {
      await put(backend, String(call)).then(
        () => seen.push("ok"),
        (error: Error) => seen.push(error.message),
      );
    }
    return seen;
  };

  it("repeat with their seed, which every error names", async () => {
    const first = await outcomes(1234);
    expect(await outcomes(1234)).toEqual(first);
    expect(await outcomes(1235)).not.toEqual(first);
    const faults = first.filter((outcome) => outcome !== "ok");
    expect(faults.length).toBeGreaterThan(50);
    expect(faults.length).toBeLessThan(110);
    for (const fault of faults) expect(fault).toMatch(/seed 1234, call \d+/);
    expect(faults.some((fault) => fault.includes("dropped"))).toBe(true);
    expect(faults.some((fault) => fault.includes("lost"))).toBe(true);
    expect(await outcomes(undefined)).not.toEqual(await outcomes(undefined));
  });

  it("take a random time up to delayMs, and end with calm", async () => {
    chaos.random({ delayMs: 100 });
    const reads = Array.from({ length: 50 }, () => chaos.read("p:a"));
    await clock.advance(50);
    const early = (await Promise.all(reads.map(isSettled))).filter(Boolean).length;
    expect(early).toBeGreaterThan(5);
    expect(early).toBeLessThan(45);
    await clock.advance(50);
    await Promise.all(reads);
    chaos.calm();
    await chaos.read("p:a");
  });
});

describe("pushes", () => {
  const heard: (string | undefined)[] = [];

  beforeEach(async () => {
    heard.length = 0;
    chaos.push?.onChange((key) => heard.push(key));
    await chaos.connect();
    heard.length = 0;
    await chaos.read("p:a");
  });

  it("pass through as they come", async () => {
    await put(store.client(), "a");
    expect(heard).toEqual(["p:a"]);
    expect(chaos.push?.epoch("p:a")).toBeGreaterThan(0);
  });

  it("can be late", async () => {
    chaos.delayPushes(100);
    await put(store.client(), "a");
    await clock.advance(99);
    expect(heard).toEqual([]);
    await clock.advance(1);
    expect(heard).toEqual(["p:a"]);
  });

  it("can be lost: the epoch is 0 during the outage and a new one afterwards", async () => {
    const before = chaos.push?.epoch("p:a");
    chaos.losePushes();
    expect(chaos.push?.epoch("p:a")).toBe(0);
    await put(store.client(), "a");
    expect(heard).toEqual([]);
    chaos.restorePushes();
    expect(heard).toEqual([undefined]);
    expect(chaos.push?.epoch("p:a")).not.toBe(0);
    expect(chaos.push?.epoch("p:a")).not.toBe(before);
  });

  it("are also lost while delayed", async () => {
    chaos.delayPushes(100);
    await put(store.client(), "a");
    chaos.losePushes();
    await clock.advance(200);
    expect(heard).toEqual([]);
  });
});

it("has the optional methods of the wrapped backend and no others", () => {
  const plain = new ChaosBackend(new ReferenceStore(clock, { scan: false }).client());
  expect(plain.capabilities.scan).toBe(false);
  expect("push" in plain).toBe(false);
  expect("touch" in plain).toBe(false);
  expect("memoryUsage" in plain).toBe(false);
  expect("makesRoom" in plain).toBe(false);
  expect(chaos.push).toBeDefined();
});

describe("how full the store is", () => {
  /** A store that is full to 97 %. */
  function filled(makesRoom: boolean): ChaosBackend {
    const inner = Object.assign(store.client(), {
      memoryUsage: async () => 0.97,
      makesRoom: () => makesRoom,
    });
    return new ChaosBackend(inner, { clock });
  }

  it("is passed on, as is whether it evicts: a cache's health reports both", async () => {
    const full = filled(false);
    expect([await full.memoryUsage?.(), full.makesRoom?.(), full.calls("memoryUsage")]).toEqual([
      0.97,
      false,
      1,
    ]);
    const cache = cacheWithClock({ backend: full }, clock);
    const { status, checks, performanceMetrics } = await cache.detailedHealthCheck();
    expect([status, performanceMetrics.memoryUsage]).toEqual(["degraded", 0.97]);
    expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(["memory"]);
    const roomy = cacheWithClock({ backend: filled(true) }, clock);
    expect(await roomy.detailedHealthCheck()).toMatchObject({
      status: "healthy",
      performanceMetrics: { memoryUsage: 0.97 },
    });
  });

  it("can fail like any other call, and the last known value then stands", async () => {
    const backend = filled(false);
    const cache = cacheWithClock({ backend }, clock);
    await cache.detailedHealthCheck();
    backend.drop("memoryUsage");
    await expect(backend.memoryUsage?.()).rejects.toBeInstanceOf(ConnectionError);
    await clock.advance(10_000);
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0.97);
    await settle();
    expect(backend.calls("memoryUsage")).toBe(3);
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(0.97);
  });
});

describe("a cache on a store that misbehaves", () => {
  let cache: XCache;

  beforeEach(async () => {
    cache = cacheWithClock({ backend: chaos, operationTimeout: 1 }, clock);
    await cache.set("key", "value", { tags: ["tag"] });
  });

  const operations: Record<string, (cache: XCache) => Promise<unknown>> = {
    get: (c) => c.get("key"),
    getMany: (c) => c.getMany(["key"]),
    set: (c) => c.set("key", 1),
    setMany: (c) => c.setMany({ key: 1 }),
    delete: (c) => c.delete("key"),
    exists: (c) => c.exists("key"),
    ttl: (c) => c.ttl("key"),
    tags: (c) => c.tags("key"),
    invalidateTags: (c) => c.invalidateTags("tag"),
    invalidatePattern: (c) => c.invalidatePattern("*"),
    clear: (c) => c.clear(),
    getStats: (c) => c.getStats(),
    "getStats exact": (c) => c.getStats({ exact: true }),
    keys: async (c) => {
      for await (const _ of c.keys());
    },
  };

  it.each(Object.entries(operations))(
    "%s rejects within the deadline while the store hangs",
    async (_name, run) => {
      chaos.hang();
      const call = run(cache);
      const outcome = call.catch((error: unknown) => error);
      await clock.advance(1_000);
      expect(await isSettled(call)).toBe(true);
      expect(await outcome).toBeInstanceOf(OperationTimeoutError);
      chaos.calm();
    },
  );

  it.each(Object.entries(operations))(
    "%s rejects with a typed error while the store cannot be reached",
    async (_, run) => {
      chaos.drop("all");
      await expect(run(cache)).rejects.toBeInstanceOf(ConnectionError);
    },
  );

  it("getOrSet runs the load if the store fails, or after the deadline if it hangs", async () => {
    chaos.drop("all");
    expect(await cache.getOrSet("key", () => "loaded")).toBe("loaded");
    chaos.calm().hang();
    const call = cache.getOrSet("key", () => "loaded");
    await clock.advance(1_000);
    expect(await isSettled(call)).toBe(true);
    expect(await call).toBe("loaded");
  });

  it("getOrSet answers within two deadlines, whichever of its calls hangs first", async () => {
    const plain = new ReferenceStore(clock);
    let hungAnywhere = 0;
    for (let first = 1; first <= 12; first++) {
      const key = `key ${first}`;
      const other = cacheWithClock({ backend: plain.client() }, clock);
      const slow = new ChaosBackend(plain.client(), { clock });
      const waiting = cacheWithClock({ backend: slow, operationTimeout: 1 }, clock);
      // Another process is loading the key, so that leases are read too.
      const ahead = other.getOrSet(key, (_context) => new Promise(() => {}), { tags: ["tag"] });
      await settle();
      let made = 0;
      slow.delay(() => (++made >= first ? FOR_EVER : 0));
      const load = (context: { setTags(tags: string[]): void }): string => {
        context.setTags(["late"]);
        return "loaded";
      };
      const call = waiting.getOrSet(key, load, { tags: ["tag"] });
      await clock.advance(2_000);
      hungAnywhere += made >= first ? 1 : 0;
      expect(await isSettled(call), `hanging from call ${first}`).toBe(true);
      expect(await call).toBe("loaded");
      expect(await isSettled(ahead)).toBe(false);
    }
    expect(hungAnywhere).toBe(12);
  });

  it("a load that continues after disconnect does not touch the store", async () => {
    let finish: (value: string) => void = () => {};
    const call = cache.getOrSet("other", () => new Promise<string>((resolve) => (finish = resolve)));
    await settle();
    await cache.disconnect();
    const before = chaos.calls();
    await clock.advance(20_000);
    finish("late");
    expect(await call).toBe("late");
    await clock.advance(20_000);
    expect(chaos.calls()).toBe(before);
    await cache.connect();
    expect(await cache.get("other")).toBeUndefined();
    expect(await cache.getOrSet("other", () => "new")).toBe("new");
    expect(await cache.get("other")).toBe("new");
  });

  it("health is false and disconnect ends while the store hangs", async () => {
    chaos.hang();
    const health = cache.health();
    await clock.advance(1_000);
    expect(await health).toBe(false);
    const end = cache.disconnect();
    await clock.advance(1_000);
    expect(await isSettled(end)).toBe(true);
  });

  it("the circuit opens after repeated failures, and one good probe closes it", async () => {
    chaos.drop("all");
    for (let call = 0; call < 5; call++)
      await expect(cache.get("key")).rejects.toBeInstanceOf(ConnectionError);
    const before = chaos.calls();
    await expect(cache.get("key")).rejects.toBeInstanceOf(CircuitOpenError);
    expect(chaos.calls()).toBe(before);
    chaos.calm();
    await clock.advance(30_000);
    expect(await cache.get("key")).toBe("value");
    expect(await cache.get("key")).toBe("value");
  });

  it("a lost reply to an invalidation is an error, and the entry is gone", async () => {
    chaos.lose("takeMany", 1);
    await expect(cache.invalidateTags("tag")).rejects.toBeInstanceOf(BackendError);
    expect(await cache.get("key")).toBeUndefined();
  });

  it("a stamp whose push overtook its reply is not cached locally", async () => {
    const other = cacheWithClock({ backend: store.client() }, clock);
    const late = new ChaosBackend(store.client(), { clock });
    const reader = cacheWithClock({ backend: late }, clock);
    late.delay((operation) => (operation === "readMany" ? 100 : 0));
    const overtaken = reader.get("key");
    await clock.advance(60);
    await other.invalidateTags("tag");
    await clock.advance(40);
    expect(await isSettled(overtaken)).toBe(true);
    late.calm();
    expect(await reader.get("key")).toBeUndefined();
  });

  it("an untrusted push channel costs reads, never a stale answer", async () => {
    const other = cacheWithClock({ backend: store.client() }, clock);
    expect(await cache.get("key")).toBe("value");
    const before = chaos.calls();
    expect(await cache.get("key")).toBe("value");
    expect(chaos.calls() - before).toBe(1);
    chaos.losePushes();
    expect(await cache.get("key")).toBe("value");
    await other.invalidateTags("tag");
    expect(await cache.get("key")).toBeUndefined();
    await other.set("key", "new", { tags: ["tag"] });
    chaos.restorePushes();
    expect(await cache.get("key")).toBe("new");
  });
});
