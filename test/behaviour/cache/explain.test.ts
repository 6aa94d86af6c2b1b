// cache.explain(): what a call would do and why, on every kind of store; DEBUG=xcache:cache writes what calls did.
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { DecisionLog } from "../../../src/cache/decision-log.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { Emitter } from "../../../src/core/events.ts";
import { ConfigError, ConnectionError, InvalidKeyError, type KeyExplanation } from "../../../src/index.ts";
import { ChaosBackend } from "../../../src/testing/chaos-backend.ts";
import { cacheWithClock, ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { ReferenceBackend, ReferenceStore } from "../../support/reference-backend.ts";

let clock: ManualClock;
let store: ReferenceStore;
beforeEach(() => {
  clock = new ManualClock();
  store = new ReferenceStore(clock);
});

function open(config: CacheConfig): XCache {
  const cache = cacheWithClock(config, clock);
  onTestFinished(() => cache.disconnect());
  return cache;
}

const openShared = (config: CacheConfig = {}): XCache =>
  open({ backend: new ReferenceBackend(store), ...config });

/** A load that ends when the test decides. */
function heldLoad(): { load: () => Promise<string>; end: () => void } {
  let end = (): void => {};
  const loaded = new Promise<string>((resolve) => {
    end = () => resolve("loaded");
  });
  return { load: () => loaded, end };
}

describe.each([
  ["memory", "memory" as const, (): XCache => open({ kvUrl: "memory://" })],
  ["a shared store", "store" as const, (): XCache => openShared()],
])("explain on %s", (_name, tier, openCache) => {
  test("a key that was never set", async () => {
    expect(await openCache().explain("k")).toEqual({
      key: "k",
      get: "miss",
      getOrSet: "load",
      state: "absent",
      reason: "nothing is stored: never set, deleted, expired or evicted",
      circuitBreaker: "closed",
    });
  });

  test("a fresh entry, with its tier, tags and time left", async () => {
    const cache = openCache();
    await cache.set("k", 1, { ttl: 60, tags: ["a"] });
    const explanation = await cache.explain("k");
    expect(explanation).toMatchObject({ get: "hit", getOrSet: "hit", state: "fresh", tier, tags: ["a"] });
    expect(explanation.ttl).toBeCloseTo(60, 0);
    expect(explanation.reason).toMatch(/^fresh for (60|59\.\d+) s in the (memory of this process|store)$/);
    expect(await cache.explain("k", { forceLoad: true })).toMatchObject({ get: "hit", getOrSet: "load" });
    await cache.set("k", 1, { ttl: Number.POSITIVE_INFINITY });
    expect((await cache.explain("k")).reason).toContain("never expires");
  });

  test("an expired entry: gone, served stale, or kept in case the load fails", async () => {
    const cache = openCache();
    await cache.getOrSet("k", () => 1, { ttl: 1, staleWhileRevalidate: 600, tags: ["a"] });
    await clock.advance(3_000);
    expect(await cache.explain("k")).toMatchObject({ get: "miss", getOrSet: "load", state: "expired" });
    const stale = await cache.explain("k", { staleWhileRevalidate: 600 });
    expect(stale).toMatchObject({ get: "miss", getOrSet: "stale", state: "expired", tags: ["a"] });
    expect(stale.reason).toMatch(/^expired 2(\.\d+)? s ago; served stale while it is loaded again$/);
    expect(stale.expiredFor).toBeCloseTo(2, 0);
    expect(stale.staleFor).toBeCloseTo(598, 0);
    const kept = await cache.explain("k", { staleIfError: 600 });
    expect(kept).toMatchObject({ getOrSet: "load", reason: expect.stringContaining("if the load fails") });
    await cache.getOrSet("k", () => Promise.reject(new Error("down")), { staleIfError: 600 });
    expect(await cache.explain("k", { staleIfError: 600 })).toMatchObject({
      getOrSet: "stale",
      reason: expect.stringContaining("since the last load has failed"),
    });
  });

  test("an invalidated entry, with the tags that caused it and when; explaining does not reclaim it", async () => {
    const cache = openCache();
    await cache.set("k", 1, { tags: ["a", "b", "c"] });
    await cache.invalidateTags(["a", "c"]);
    const expected = {
      get: "miss",
      getOrSet: "load",
      state: "invalidated",
      tags: ["a", "b", "c"],
      invalidatedBy: { tags: ["a", "c"], cleared: false, at: expect.stringMatching(/^\d{4}-.*Z$/) },
      reason: expect.stringMatching(/^invalidated by the tags "a", "c" at /),
    };
    expect(await cache.explain("k")).toMatchObject(expected);
    expect(await cache.explain("k")).toMatchObject(expected);
  });

  test("a key that this process is loading", async () => {
    const cache = openCache();
    const { load, end } = heldLoad();
    const calls = [cache.getOrSet("k", load, { tags: ["a"] }), cache.getOrSet("k", load, { tags: ["a"] })];
    await settle();
    expect(await cache.explain("k")).toMatchObject({
      getOrSet: "join",
      loading: { by: "this process", callers: 2 },
      reason: expect.stringContaining("this process is loading it for 2 callers"),
    });
    await cache.invalidateTags("a");
    // Its value is too old now.
    expect(await cache.explain("k")).toMatchObject({ getOrSet: "load" });
    end();
    await Promise.all(calls);
  });

  test("nothing is counted, kept, loaded or emitted", async () => {
    const cache = openCache();
    await cache.set("k", 1);
    const events: unknown[] = [];
    for (const event of ["hit", "miss", "error"] as const) cache.on(event, (about) => events.push(about));
    const before = await cache.getStats();
    await cache.explain("k");
    await cache.explain("other");
    const after = await cache.getStats();
    expect(after.totalHits + after.totalMisses).toBe(before.totalHits + before.totalMisses);
    expect(cache.getComprehensiveMetrics().byOperation).not.toHaveProperty("explain");
    expect(events).toEqual([]);
  });

  test("bad keys and options are rejected, and so is a disconnected cache", async () => {
    const cache = openCache();
    await expect(cache.explain("")).rejects.toThrow(InvalidKeyError);
    await expect(cache.explain("k", { tll: 1 } as never)).rejects.toThrow(ConfigError);
    await cache.disconnect();
    await expect(cache.explain("k")).rejects.toThrow(ConnectionError);
  });
});

describe("explain on a shared store", () => {
  test("an entry of a cleared namespace, and one whose tag another process invalidated", async () => {
    const [cache, other] = [openShared(), openShared()];
    await cache.set("k", 1, { tags: ["a"] });
    await other.invalidateTags("a");
    expect((await cache.explain("k")).invalidatedBy).toEqual({ tags: ["a"], cleared: false });
    const child = cache.namespace("child");
    await child.set("k", 1);
    // Removed by the sweep after a clear, unless it is read immediately.
    const explaining = cache.clear().then(() => child.explain("k"));
    expect(["invalidated", "absent"]).toContain((await explaining).state);
  });

  test("a key that another process is loading", async () => {
    const [cache, other] = [openShared(), openShared()];
    const { load, end } = heldLoad();
    const call = other.getOrSet("k", load);
    await settle();
    const explanation = await cache.explain("k");
    expect(explanation).toMatchObject({ getOrSet: "join", loading: { by: "another process" } });
    expect(await cache.explain("k", { lock: false })).toMatchObject({ getOrSet: "load" });
    end();
    await call;
  });

  test("a store that fails, and an open circuit breaker, in which case the store is not asked", async () => {
    const chaos = new ChaosBackend(new ReferenceBackend(store), { clock });
    const cache = open({ backend: chaos, circuitBreaker: { failureThreshold: 2, resetTimeout: 30 } });
    cache.on("error", () => {});
    await cache.set("k", 1);
    chaos.fail("all", new ConnectionError("down"));
    const failing: KeyExplanation = await cache.explain("k");
    expect(failing).toMatchObject({
      get: "error",
      getOrSet: "load",
      state: "unknown",
      circuitBreaker: "closed",
    });
    expect(failing.reason).toMatch(/^the store failed \(\w+\): get throws, getOrSet loads without storing$/);
    await expect(cache.get("k")).rejects.toThrow();
    const asked = chaos.calls();
    expect(await cache.explain("k")).toMatchObject({
      get: "error",
      state: "unknown",
      circuitBreaker: "open",
    });
    expect(chaos.calls()).toBe(asked);
    chaos.calm();
  });
});

describe("DEBUG=xcache:cache", () => {
  function written(names = "xcache:cache"): string[] {
    vi.stubEnv("DEBUG", names);
    const lines: string[] = [];
    const spy = vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
    onTestFinished(() => {
      spy.mockRestore();
      vi.unstubAllEnvs();
    });
    return lines;
  }

  test.each(["xcache:db", "xcache:*,-xcache:cache", "", "http"])("%j writes nothing", async (names) => {
    const lines = written(names);
    const cache = open({ kvUrl: "memory://" });
    await cache.getOrSet("k", () => 1);
    await settle();
    expect(lines).toEqual([]);
  });

  test("the query of an address in a key is omitted", async () => {
    const lines = written();
    const cache = open({ kvUrl: "memory://" });
    await cache.set("web:http 3:a.b/page?token=secret", 1);
    await settle();
    expect(lines).toEqual(['xcache:cache stored "web:http 3:a.b/page?..."\n']);
  });

  test.each(["xcache:cache", "http,xcache:*", "*"])(
    "%s writes each decision with its reason",
    async (names) => {
      const lines = written(names);
      const cache = openShared();
      await cache.get("k");
      await cache.getOrSet("k", () => "a secret value", { ttl: 1, tags: ["t"], staleWhileRevalidate: 600 });
      await cache.getOrSet("k", () => "a secret value");
      await clock.advance(2_000);
      const { load, end } = heldLoad();
      await cache.getOrSet("k", load, { tags: ["t"], staleWhileRevalidate: 600 });
      await settle();
      const joined = cache.getOrSet("k", load);
      await cache.invalidateTags("t");
      await cache.get("k");
      end();
      await joined;
      await cache.getOrSet("skipped", (context) => {
        context.skip();
        return "a secret value";
      });
      await expect(cache.getOrSet("bad", () => Promise.reject(new Error("a secret")))).rejects.toThrow();
      await cache.delete("k");
      await cache.clear();
      await settle();
      const absent = "nothing is stored: never set, deleted, expired or evicted";
      const matching = (start: string): unknown => expect.stringMatching(`^xcache:cache ${start}`);
      for (const line of [
        `get "k": miss \\(${absent}\\)\n`,
        'stored "k"; tags: "t"\n',
        `getOrSet "k": loaded \\(${absent}\\)\n`,
        'getOrSet "k": hit \\(fresh for ',
        'getOrSet "k": stale value served \\(expired 1 s ago\\)\n',
        'invalidated the tags "t"\n',
        'get "k": miss \\(invalidated by the tag "t" at .*\\)\n',
        'not stored "k": the key or one of its tags was written or invalidated while it ran\n',
        'not stored "skipped": the load called skip\\(\\)\n',
        `getOrSet "bad": failed with "Error" \\(${absent}\\)\n`,
        'deleted "k"\n',
        "cleared the namespace\n",
      ])
        expect(lines).toContainEqual(matching(line));
      expect(lines.join("")).not.toContain("secret");
    },
  );

  test.each([
    ["a hit that is invalidated", "value", "invalidated", 'get "k": hit\n'],
    ["a miss that is stored", undefined, "fresh", 'get "k": miss\n'],
  ])("%s before its reason is known has none that contradicts it", async (_, value, state, line) => {
    const lines: string[] = [];
    const late = { key: "k", get: "hit", getOrSet: "hit", circuitBreaker: "closed", state, reason: "late" };
    const log = new DecisionLog(
      (text) => lines.push(`${text}\n`),
      new Emitter(),
      async () => late as KeyExplanation,
    );
    await log.around("get", "k", async () => value);
    await settle();
    expect(lines).toEqual([line]);
  });

  test("a joined load, and names that would control a terminal", async () => {
    const lines = written();
    const cache = open({ kvUrl: "memory://" });
    const { load, end } = heldLoad();
    const key = `\u001b[2J\n\u202e${"x".repeat(300)}`;
    const calls = [cache.getOrSet(key, load), cache.getOrSet(key, load)];
    await settle();
    end();
    await Promise.all(calls);
    await settle();
    expect(lines).toContainEqual(expect.stringContaining("joined a load (nothing is stored"));
    for (const line of lines) expect(line).toMatch(/^[ -~]{1,400}\n$/);
  });
});
