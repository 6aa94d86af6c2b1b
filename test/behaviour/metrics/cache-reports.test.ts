// What a cache object reports to its configured collectors, from its first call to its last.
import { describe, expect, it, onTestFinished } from "vitest";
import { CacheMetrics } from "../../../src/metrics/collectors/cache-metrics.ts";
import { PullCollector } from "../../../src/metrics/prometheus/pull.ts";
import { BuiltInRegistry } from "../../../src/metrics/prometheus/registry.ts";
import { XCache } from "../../../src/xcache.ts";
import { readPage } from "../../metrics/exposition-page.ts";
import { ListeningCollector } from "../../metrics/listening-collector.ts";
import { startRedis } from "../../support/redis.ts";
import { memoryCache } from "../cache/memory-cache.ts";

function pullCollector() {
  const collector = new PullCollector({ registry: new BuiltInRegistry() });
  return { collector, page: async () => readPage(await collector.metrics()).series };
}

describe("a cache", () => {
  it("reports every operation to each collector, and no label contains a key", async () => {
    const [listening, { collector, page }] = [new ListeningCollector(), pullCollector()];
    const { cache, clock } = memoryCache({ metrics: new CacheMetrics([listening, collector]) });
    await cache.set("user:42", 1, { tags: ["tag:42"] });
    await cache.get("user:42");
    await cache.get("absent:42");
    await cache.getMany(["user:42", "absent:42"]);
    await cache.getOrSet("loaded:42", () => 1);
    await cache.delete("user:42");
    await cache.invalidateTags("tag:42");
    await cache.get("").catch(() => {});
    await clock.advance(10);
    const counters = ["gets", "hits", "misses", "sets", "deletes", "invalidations", "errors"];
    const reported = counters.map((name) => listening.total(`cache.${name}.total`));
    expect(reported).toEqual([5, 2, 3, 2, 1, 1, 1]);
    const series = await page();
    const summed = (name: string): number =>
      [...series]
        .filter(([id]) => id.replace(/\{.*/, "") === `xcache_cache_${name}_total`)
        .reduce((sum, [, value]) => sum + value, 0);
    expect(counters.map(summed)).toEqual(reported);
    const operations = listening.of("cache.operation_duration").map(([, , , tags]) => tags?.operation);
    expect(new Set(operations)).toEqual(
      new Set(["set", "get", "getMany", "getOrSet", "delete", "invalidateTags"]),
    );
    expect(JSON.stringify([listening.calls, [...series]])).not.toContain(":42");
  });

  it("accepts a user's own collector as it is", async () => {
    const listening = new ListeningCollector();
    const { cache, clock } = memoryCache({ metrics: listening });
    await cache.get("k");
    await clock.advance(10);
    expect(listening.total("cache.misses.total")).toBe(1);
  });

  it("is summed with its namespaces and with other caches", async () => {
    const { collector, page } = pullCollector();
    const metrics = new CacheMetrics([collector]);
    const [one, other] = [memoryCache({ metrics }).cache, memoryCache({ metrics }).cache];
    await one.set("a", 1);
    await one.namespace("n").setMany({ b: 1, c: 1 });
    await other.set("d", 1);
    const series = await page();
    expect(series.get("xcache_cache_sets_total")).toBe(4);
    expect(series.get("xcache_cache_keys_count")).toBe(4);
  });

  it("counts entries once, however many cache objects see them", async () => {
    const { collector, page } = pullCollector();
    const metrics = new CacheMetrics([collector]);
    const { MemoryBackend } = await import("../../../src/backends/memory/backend.ts");
    const backend = new MemoryBackend();
    const [one] = [memoryCache({ metrics, backend }).cache, memoryCache({ metrics, backend }).cache];
    await one.set("a", 1);
    expect((await page()).get("xcache_cache_keys_count")).toBe(1);
  });

  it("reports its last calls when it disconnects, and continues when it connects again", async () => {
    const [listening, { collector, page }] = [new ListeningCollector(), pullCollector()];
    const { cache, clock } = memoryCache({ metrics: new CacheMetrics([listening, collector]) });
    cache.startMetricsCollection();
    await cache.get("k");
    await cache.disconnect();
    expect(listening.total("cache.misses.total")).toBe(1);
    expect(clock.pending).toBe(0);
    expect((await page()).get("xcache_cache_misses_total")).toBe(1);
    expect((await page()).has("xcache_cache_keys_count")).toBe(false);
    await cache.connect();
    await cache.get("k");
    await clock.advance(10);
    expect(listening.total("cache.misses.total")).toBe(2);
    expect((await page()).get("xcache_cache_misses_total")).toBe(2);
    expect((await page()).get("xcache_cache_keys_count")).toBe(0);
  });

  it("reports nothing when enableMetrics is false", async () => {
    const listening = new ListeningCollector();
    const { cache, clock } = memoryCache({ metrics: listening, enableMetrics: false });
    await cache.get("k");
    await clock.advance(10);
    expect(listening.calls).toEqual([]);
  });

  it("works with collectors that throw, reject and hang", async () => {
    const broken = (does: () => void | Promise<void>) => ({
      increment: does,
      gauge: does,
      histogram: does,
      timing: does,
    });
    const metrics = new CacheMetrics([
      broken(() => {
        throw new Error("broken");
      }),
      broken(() => Promise.reject(new Error("broken"))),
      broken(() => new Promise(() => {})),
    ]);
    const { cache, clock, errors } = memoryCache({ metrics });
    cache.startMetricsCollection();
    for (let n = 0; n < 3_000; n++) {
      await cache.set("k", n);
      expect(await cache.get("k")).toBe(n);
      if (n % 10 === 0) await clock.advance(10);
    }
    await cache.disconnect();
    const [thrown, rejected, hung] = metrics.failures;
    expect(thrown?.thrown).toBeGreaterThan(900);
    expect(rejected?.rejected).toBeGreaterThan(900);
    expect(hung?.hung).toBeGreaterThan(0);
    expect(errors).toEqual([]);
  });

  it("on Redis distinguishes hits that were read from the store", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { collector, page } = pullCollector();
    const cache = new XCache({ kvUrl: redis.url, nearCache: true, metrics: collector });
    onTestFinished(() => cache.disconnect());
    const writer = new XCache({ kvUrl: redis.url });
    onTestFinished(() => writer.disconnect());
    await writer.set("k", 1);
    await cache.get("k");
    for (let n = 0; n < 10; n++) await cache.get("k");
    const series = await page();
    expect(series.get("xcache_cache_hits_total")).toBe(11);
    expect(series.get("xcache_cache_store_hits_total")).toBe(1);
    expect(series.get("xcache_cache_keys_count")).toBe(1);
    expect([...series.keys()].find((id) => id.startsWith("xcache_cache_info"))).toContain('backend="');
    expect(series.get("xcache_cache_circuit_breaker_open")).toBe(0);
  });
});
