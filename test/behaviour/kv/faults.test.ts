// A failing store delays a caller by at most the deadline, then not at all, and is used again once it recovers.
import { afterEach, describe, expect, it } from "vitest";
import {
  BackendError,
  CircuitOpenError,
  ConnectionError,
  OperationTimeoutError,
} from "../../../src/core/errors.ts";
import type { XCache } from "../../../src/xcache.ts";
import { resumes } from "../../support/kv/trouble.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { startRedis } from "../../support/redis.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const TIMEOUT_S = 0.3;
/** How much longer than the deadline a call may take on a busy machine. */
const SLACK_MS = 700;

const caches = redisCaches({
  operationTimeout: TIMEOUT_S,
  // High enough that a few failures do not open the circuit and hide how each call behaves.
  circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 },
});
const { open } = caches;

/** The outcome of a call, which must end within the deadline. */
async function inTime<T>(work: Promise<T>): Promise<T | Error> {
  const { ms, outcome } = await timed(work);
  expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
  return outcome;
}

/** The deadline is short for the faults, not for this. */
const isStored = (cache: XCache, key: string, value: unknown): Promise<unknown> =>
  until(() => cache.set(key, value).then(() => true), { what: "it is stored" });

describe("a frozen server", () => {
  afterEach(() => caches.server.thaw());

  it("delays each call by at most the deadline, and the cache recovers by itself afterwards", async () => {
    const cache = open();
    await isStored(cache, "k", "v");
    caches.server.freeze();
    const calls = [
      cache.get("k"),
      cache.set("k", 2),
      cache.delete("k"),
      cache.getMany(["k", "l"]),
      cache.exists("k"),
      cache.invalidateTags(["t"]),
      cache.clear(),
      cache.getStats(),
    ];
    for (const { ms, outcome } of await Promise.all(calls.map((call) => timed<unknown>(call)))) {
      expect(outcome).toBeInstanceOf(BackendError);
      expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
    }
    caches.server.thaw();
    await resumes(cache);
  });

  it("does not fail getOrSet: the load runs, after at most the deadline", async () => {
    const cache = open();
    await isStored(cache, "other", 1);
    caches.server.freeze();
    const { ms, outcome } = await timed(cache.getOrSet("k", () => "loaded"));
    expect(outcome).toBe("loaded");
    expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
  });

  it("is reported by the health check, which never hangs", async () => {
    const cache = open();
    await isStored(cache, "other", 1);
    caches.server.freeze();
    const { ms, outcome } = await timed(cache.healthCheck());
    expect(outcome).toMatchObject({ isHealthy: false });
    expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
  });

  it("does not delay disconnect by more than the deadline", async () => {
    const cache = open();
    await isStored(cache, "other", 1);
    caches.server.freeze();
    const pending = timed(cache.get("k"));
    const { ms } = await timed(cache.disconnect());
    expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
    expect((await pending).outcome).toBeInstanceOf(ConnectionError);
  });

  it("opens the breaker, and then a call takes microseconds", async () => {
    const cache = open({ circuitBreaker: { failureThreshold: 3, resetTimeout: 30 } });
    await isStored(cache, "other", 1);
    caches.server.freeze();
    await Promise.all(Array.from({ length: 3 }, () => timed(cache.get("k"))));
    const refused = expect.any(CircuitOpenError);
    const calls: readonly (readonly [string, () => Promise<unknown>, unknown])[] = [
      ["get", () => cache.get("k"), refused],
      ["set", () => cache.set("k", 1), refused],
      ["delete", () => cache.delete("k"), refused],
      ["invalidateTags", () => cache.invalidateTags(["t"]), refused],
      ["getOrSet", () => cache.getOrSet("k", () => "loaded"), "loaded"],
    ];
    for (const [name, call, expected] of calls) {
      // The quickest of several rounds: others may be using the machine.
      let quickest = Number.POSITIVE_INFINITY;
      for (let round = 0; round < 20; round++) {
        const started = performance.now();
        for (let times = 0; times < 50; times++) await call().catch(() => {});
        quickest = Math.min(quickest, (performance.now() - started) / 50);
      }
      expect(quickest, `milliseconds of ${name}`).toBeLessThan(soon(0.25));
      expect((await timed(call())).outcome, name).toEqual(expected);
    }
  });

  it("does not receive earlier commands once it resumes", async () => {
    const cache = open();
    const other = open();
    await cache.set("k", "old");
    caches.server.freeze();
    expect((await timed(cache.set("k", "late"))).outcome).toBeInstanceOf(OperationTimeoutError);
    caches.server.thaw();
    await other.set("k", "newer");
    await resumes(cache);
    // The write may or may not have been executed; its compensating delete has removed the key, so nothing old is read.
    expect(["newer", undefined]).toContain(await cache.get("k"));
  });
});

describe("a server that is not running", () => {
  it("fails calls at once, and is used as soon as it runs", async () => {
    const late = await startRedis();
    try {
      await late.kill();
      const cache = open({ kvUrl: late.url });
      const { ms, outcome } = await timed(cache.get("k"));
      expect(outcome).toBeInstanceOf(ConnectionError);
      expect(ms).toBeLessThan(soon(SLACK_MS));
      expect(await cache.getOrSet("k", () => "loaded")).toBe("loaded");
      await late.start();
      await resumes(cache);
    } finally {
      await late.stop();
    }
  });
});

describe("a server that restarts", () => {
  it("is used again without restarting this process", async () => {
    const cache = open();
    await cache.set("k", 1);
    await caches.server.restart();
    await resumes(cache);
  });
});

describe("a server that answers with an error", () => {
  it("out of memory: set fails with a typed error and a hint, all else works, and so does set once there is room", async () => {
    await using full = await startRedis({ maxmemoryPolicy: "noeviction" });
    const cache = open({ kvUrl: full.url });
    await cache.set("kept", "small");
    await cache.set("deleted", "old");
    await cache.set("tagged", "old", { tags: ["t"] });
    await full.cli("config", "set", "maxmemory", "1");
    const outcome = await inTime(cache.set("l", "x".repeat(10_000)));
    expect(outcome).toBeInstanceOf(BackendError);
    expect(outcome).toMatchObject({ code: "STORE_FAILED", hint: expect.stringContaining("maxmemory") });
    expect(await inTime(cache.get("kept"))).toBe("small");
    expect(await inTime(cache.getOrSet("m", () => "loaded"))).toBe("loaded");
    // A store that cannot store anything is not healthy.
    expect(await inTime(cache.healthCheck())).toMatchObject({ isHealthy: false });
    expect(await inTime(cache.delete("deleted"))).toBe(1);
    expect(await inTime(cache.invalidateTags(["t"]))).toBeUndefined();
    for (const key of ["deleted", "tagged"]) expect(await inTime(cache.get(key)), key).toBeUndefined();
    await full.cli("config", "set", "maxmemory", "0");
    await cache.set("l", "fits");
    expect(await cache.get("l")).toBe("fits");
    expect(await cache.get("kept")).toBe("small");
    for (const key of ["deleted", "tagged"]) expect(await cache.get(key), key).toBeUndefined();
  });

  it("a server that became a replica is dropped, and used again once it is a master", async () => {
    const cache = open();
    await cache.set("k", 1);
    await caches.server.cli("replicaof", "127.0.0.1", "1");
    try {
      expect(await inTime(cache.set("k", 2))).toBeInstanceOf(ConnectionError);
      expect(await inTime(cache.invalidateTags(["t"]))).toBeInstanceOf(ConnectionError);
      expect(await inTime(cache.getOrSet("l", () => "loaded"))).toBe("loaded");
    } finally {
      await caches.server.cli("replicaof", "no", "one");
    }
    await resumes(cache);
  });
});

describe("an invalidation that could not be delivered", () => {
  it("takes effect once the store is back, before anything is served: delete, set and invalidateTags", async () => {
    const cache = open();
    const other = open();
    await cache.set("deleted", "old");
    await cache.set("set", "old");
    await cache.set("tagged", "old", { tags: ["t"] });
    await cache.set("untouched", "old");
    caches.server.freeze();
    await Promise.all([
      timed(cache.delete("deleted")),
      timed(cache.set("set", "new")),
      timed(cache.invalidateTags(["t"])),
    ]);
    caches.server.thaw();
    // Commands sent before the freeze are executed late: their connection is gone, their bytes are not.
    await until(async () => (await cache.get("untouched")) === "old", { what: "the store is back" });
    expect(await cache.get("deleted")).toBeUndefined();
    expect(await cache.get("set")).not.toBe("old");
    expect(await cache.get("tagged")).toBeUndefined();
    expect(await other.get("deleted")).toBeUndefined();
    expect(await other.get("tagged")).toBeUndefined();
  });

  it("while the circuit is open is kept, and delivered when it closes", async () => {
    const cache = open({ circuitBreaker: { failureThreshold: 2, resetTimeout: 0.2 } });
    await cache.set("k", "old", { tags: ["t"] });
    caches.server.freeze();
    await Promise.all([timed(cache.get("k")), timed(cache.get("k"))]);
    expect((await timed(cache.invalidateTags(["t"]))).outcome).toBeInstanceOf(CircuitOpenError);
    caches.server.thaw();
    await until(async () => (await cache.get("other")) === undefined, { what: "the circuit is closed" });
    expect(await cache.get("k")).toBeUndefined();
  });
});
