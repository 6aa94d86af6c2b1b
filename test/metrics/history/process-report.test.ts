// What processes report about themselves: liveness, calls by function, invalidations, changes of state; all bounded.
import { describe, expect, it, onTestFinished } from "vitest";
import { cached } from "../../../src/functions/cached.ts";
import {
  AlertManager,
  type GetOrSetOptions,
  type LoadAs,
  MemoryBackend,
  XCache,
} from "../../../src/index.ts";
import { mergeActivity } from "../../../src/metrics/history/activity.ts";
import { presencesOf } from "../../../src/metrics/history/process-report.ts";
import { FunctionCounts } from "../../../src/metrics/recording/function-counts.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";

function opened(backend = new MemoryBackend()): { cache: XCache; clock: ManualClock } {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const cache = cacheWithClock({ backend, keyPrefix: "shop" }, clock);
  onTestFinished(() => cache.disconnect());
  return { cache, clock };
}

describe("a process", () => {
  it("is listed from its first call until it disconnects, with its figures of the last minute", async () => {
    const { cache, clock } = opened();
    expect((await cache.getActivity()).processes).toEqual([]);
    await cache.set("a", 1);
    await cache.get("a");
    await cache.get("b");
    const [own, ...others] = (await cache.getActivity()).processes;
    expect(others).toEqual([]);
    expect(own).toMatchObject({ pid: process.pid, isSelf: true, totalHits: 1, totalMisses: 1, hitRate: 0.5 });
    expect(own).toMatchObject({ circuitBreaker: "closed", alerts: [], states: [] });
    await clock.advance(300_000);
    // There were no calls in the last minute, but the process is alive.
    const [idle] = (await cache.getActivity()).processes;
    expect(idle).toMatchObject({ totalHits: 0, seconds: 60, seenAt: new Date(clock.now()).toISOString() });
    await cache.disconnect();
    expect(clock.pending).toBe(0);
  });

  it("is not counted for reading the figures, however often", async () => {
    const { cache } = opened();
    await cache.set("a", 1);
    const before = cache.getComprehensiveMetrics().totalOperations;
    for (let look = 0; look < 10; look++) await cache.getActivity();
    expect(cache.getComprehensiveMetrics().totalOperations).toBe(before);
  });

  it("reports the states of its alerts", async () => {
    const { cache, clock } = opened();
    const alerts = new AlertManager(cache, { interval: 5 }, clock);
    alerts.addAlert({
      name: "low",
      metric: "hit_rate",
      comparison: "less_than",
      threshold: 0.7,
      for: 60,
      webhookUrl: "http://127.0.0.1:9/",
    });
    alerts.start();
    onTestFinished(() => alerts.stop({ timeout: 0 }));
    await cache.get("absent");
    await clock.advance(5_000);
    const [own] = (await cache.getActivity()).processes;
    expect(own?.alerts).toEqual([
      expect.objectContaining({
        name: "low",
        condition: "hit_rate less than 0.7 for 60 s",
        status: "pending",
        value: 0,
        destinations: ["webhook"],
      }),
    ]);
    await alerts.stop({ timeout: 0 });
    expect((await cache.getActivity()).processes[0]?.alerts).toEqual([]);
  });

  it("reports its changes of state once, however many caches see them", async () => {
    const { cache } = opened();
    await cache.set("a", 1);
    await cache.disconnect();
    await cache.connect();
    await cache.set("a", 1);
    const [own] = (await cache.getActivity()).processes;
    expect(own?.states.map(({ what, state }) => [what, state])).toContainEqual(["connection", "connected"]);
  });

  it.each([undefined, 7, [7, null, { id: "x" }]])(
    "a damaged record of processes, %j, lists none",
    (value) => {
      expect(presencesOf(value)).toEqual([]);
    },
  );
});

describe("calls by function", () => {
  it("are counted as hits, loads, coalesced and stale, with the time of the loads and the ttl", async () => {
    const { cache, clock } = opened();
    const waiting: (() => void)[] = [];
    const slow = cached((id: number) => new Promise<number>((resolve) => waiting.push(() => resolve(id))), {
      cache,
      name: "slow",
      ttl: 60,
      staleWhileRevalidate: 60,
    });
    const calls = [slow(1), slow(1), slow(1)];
    await clock.advance(40);
    waiting.shift()?.();
    expect(await Promise.all(calls)).toEqual([1, 1, 1]);
    await slow(1);
    await clock.advance(61_000);
    expect(await slow(1)).toBe(1);
    await clock.advance(0);
    waiting.shift()?.();
    await clock.advance(0);
    await slow(1);
    const { functions } = await cache.getActivity();
    expect(functions).toEqual([
      expect.objectContaining({
        name: "slow",
        calls: 6,
        hits: 2,
        loads: 2,
        coalesced: 2,
        staleServed: 1,
        errors: 0,
        ttlSeconds: 60,
      }),
    ]);
    expect(functions[0]?.p95LoadTime).toBeGreaterThan(0.01);
    const stats = await cache.getStats({ fleet: true });
    expect(stats).toMatchObject({ totalLoads: 2, totalCoalesced: 2, totalStaleServed: 1 });
  });

  it("count a failing load as one, and as an error", async () => {
    const { cache } = opened();
    const failing = cached(() => Promise.reject(new Error("down")), { cache, name: "failing" });
    await expect(failing()).rejects.toThrow("down");
    const { functions } = await cache.getActivity();
    expect(functions).toMatchObject([{ name: "failing", calls: 1, hits: 0, loads: 1, errors: 1 }]);
  });

  it("of a function that calls another are counted for both", async () => {
    const { cache } = opened();
    const inner = cached(async (id: number) => id, { cache, name: "inner" });
    const outer = cached(
      async (id: number) => {
        await cache.getOrSet("direct", () => 1);
        return inner(id);
      },
      { cache, name: "outer" },
    );
    await outer(1);
    await outer(1);
    const { functions } = await cache.getActivity();
    const counts = functions.map(({ name, calls, hits, loads }) => [name, calls, hits, loads]);
    expect(counts.toSorted()).toEqual([
      ["inner", 1, 0, 1],
      ["outer", 2, 1, 1],
    ]);
  });

  it("are counted in a subclass that does something else first, and whose options are its own", async () => {
    class Delayed extends XCache {
      override async getOrSet<T, S = T>(key: string, load: LoadAs<T, S>, options?: GetOrSetOptions) {
        await Promise.resolve();
        return super.getOrSet(key, load, { ...options, ttl: ttl });
      }
    }
    let ttl = 7;
    await using cache = new Delayed({ kvUrl: "memory://" });
    const plain = cached(async (id: number) => id, { cache, name: "plain" });
    const limited = cached(async (id: number) => id, { cache, name: "limited", ttl: 60 });
    await Promise.all([plain(1), limited(1)]);
    await Promise.all([plain(1), limited(1)]);
    const { functions } = await cache.getActivity();
    const counts = functions.map(({ name, calls, hits, loads, ttlSeconds }) => [
      name,
      calls,
      hits,
      loads,
      ttlSeconds,
    ]);
    expect(counts.toSorted()).toEqual([
      ["limited", 2, 1, 1, 7],
      ["plain", 2, 1, 1, 7],
    ]);
    ttl = -1;
    await expect(limited(1)).rejects.toMatchObject({ code: "ARGUMENT_INVALID" });
  });

  it("are bounded: from the 201st name on they count as other, in a process and in the fleet", () => {
    const counts = new FunctionCounts(new ManualClock());
    for (let at = 0; at < 300; at++) counts.record(`f${at}`).calls++;
    const rows = [...counts.rows()];
    expect(rows).toHaveLength(201);
    expect(rows.at(-1)?.slice(0, 2)).toMatchObject(["other", { 0: 100 }]);
    const named = (prefix: string) => ({
      functions: new Map(Array.from({ length: 150 }, (_, at) => [`${prefix}${at}`, [0, 1]])),
      invalidations: new Map(Array.from({ length: 80 }, (_, at) => [`#${prefix}${at}`, 1])),
    });
    const both = mergeActivity(named("a"), named("b"));
    expect(both.functions.size).toBe(201);
    expect(both.functions.get("other")).toEqual([0, 100]);
    expect(both.invalidations.size).toBe(101);
    expect(both.invalidations.get("other")).toBe(60);
  });
});

describe("invalidations", () => {
  it("are counted by tag, by pattern and as clears, in their minute", async () => {
    const { cache, clock } = opened();
    await cache.invalidateTags(["users", "__proto__"]);
    await cache.invalidateTags("users");
    await cache.invalidatePattern("user:*");
    await clock.advance(60_000);
    await cache.clear();
    const { invalidations } = await cache.getActivity();
    const [first, second] = [0, 60_000].map((ms) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString());
    expect(invalidations).toEqual([
      { at: first, kind: "tag", tag: "users", count: 2 },
      { at: first, kind: "tag", tag: "__proto__", count: 1 },
      { at: first, kind: "pattern", count: 1 },
      { at: second, kind: "clear", count: 1 },
    ]);
  });
});

it.each([{ since: 0 }, { since: "1 hour" }, { sinc: 1 }])("bad options are refused: %j", async (options) => {
  const { cache } = opened();
  await expect(cache.getActivity(options as never)).rejects.toThrow(/since/);
});
