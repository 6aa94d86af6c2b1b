import { describe, expect, expectTypeOf, it, onTestFinished, vi } from "vitest";
import type { Collector } from "../../../src/core/collector.ts";
import { ConfigError, ConnectionError } from "../../../src/core/errors.ts";
import { CacheMetrics, metricsOf, NoOpCollector } from "../../../src/metrics/collectors/cache-metrics.ts";
import { OtelCollector } from "../../../src/metrics/opentelemetry/otel.ts";
import type { OtelMeterProvider } from "../../../src/metrics/opentelemetry/otel-api.ts";
import { PushCollector } from "../../../src/metrics/statsd/push.ts";
import { ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import { ListeningCollector } from "../listening-collector.ts";
import { reportingCache } from "../reporting-cache.ts";

const METHODS = ["increment", "gauge", "histogram", "timing"] as const;

/** A collector whose methods all do the same. */
const collectorThat = (does: () => void | Promise<void>): Collector => ({
  increment: does,
  gauge: does,
  histogram: does,
  timing: does,
});

describe("CacheMetrics", () => {
  it("passes the application's own measurements to every collector, in order", () => {
    const [one, other] = [new ListeningCollector(), new ListeningCollector()];
    const metrics = new CacheMetrics([one, new NoOpCollector(), other]);
    metrics.increment("orders");
    metrics.increment("orders", 3, { shop: "a" });
    metrics.gauge("cache.health", 1);
    metrics.histogram("sizes", 12);
    metrics.timing("cache.health_check_duration", 0.25, { host: "b" });
    expect(one.calls).toEqual([
      ["increment", "orders", 1],
      ["increment", "orders", 3, { shop: "a" }],
      ["gauge", "cache.health", 1],
      ["histogram", "sizes", 12],
      ["timing", "cache.health_check_duration", 0.25, { host: "b" }],
    ]);
    expect(other.calls).toEqual(one.calls);
  });

  it("calls a collector once, however often it is in the list", () => {
    const collector = new ListeningCollector();
    new CacheMetrics([collector, collector]).increment("orders");
    expect(collector.calls).toHaveLength(1);
  });

  it("warns if two collectors send to the same destination, which would count everything twice", () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const push = new PushCollector({ prefix: "shop" });
    const provider = { getMeter: () => ({}) } as unknown as OtelMeterProvider;
    const otel = new OtelCollector({ meterProvider: provider });
    // The same object counts once, and other prefixes, ports and providers are other destinations.
    const others = [
      new PushCollector({ prefix: "other" }),
      new PushCollector({ prefix: "shop", port: 8126 }),
    ];
    const another = new OtelCollector({ meterProvider: { ...provider } });
    new CacheMetrics([push, push, ...others, otel, otel, another]);
    expect(warn).not.toHaveBeenCalled();
    new CacheMetrics([push, new PushCollector({ prefix: "shop" })]);
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      'two collectors of one CacheMetrics send to the daemon at 127.0.0.1:8125 as "shop.*": everything is counted twice there. Pass one of them; it serves any number of caches.',
      "XCacheWarning",
    );
    new CacheMetrics([otel, new OtelCollector({ meterProvider: provider })]);
    expect(warn.mock.lastCall?.[0]).toContain("send to the same OpenTelemetry meter provider");
  });

  it("without collectors records nothing and needs no timer for a cache", () => {
    const { source, telemetry, clock } = reportingCache();
    const metrics = new CacheMetrics();
    metrics.attach(source);
    telemetry.hit("k");
    metrics.increment("orders");
    expect(clock.pending).toBe(0);
    expect(metrics.failures).toEqual([{ collector: "NoOpCollector", thrown: 0, rejected: 0, hung: 0 }]);
  });

  it.each([
    ["no list", {}],
    ["nothing", [undefined]],
    ["an object that lacks a method", [{ increment() {}, gauge() {}, histogram() {} }]],
  ])("refuses %s", (_, collectors) => {
    expect(() => new CacheMetrics(collectors as never)).toThrow(ConfigError);
  });

  it("is itself a collector, and is not wrapped again when a configuration names it", () => {
    expectTypeOf<CacheMetrics>().toExtend<Collector>();
    const [metrics, collector] = [new CacheMetrics(), new ListeningCollector()];
    expect(metricsOf(metrics)).toBe(metrics);
    expect(metricsOf(collector)).toBe(metricsOf(collector));
    expect(metricsOf(collector)).not.toBe(metricsOf(new ListeningCollector()));
  });
});

describe("a broken collector", () => {
  it("that throws affects no call, and each throw is counted", () => {
    const listening = new ListeningCollector();
    const broken = collectorThat(() => {
      throw new Error("broken");
    });
    const metrics = new CacheMetrics([broken, listening]);
    for (const method of METHODS) metrics[method]("m", 1);
    expect(listening.calls).toHaveLength(4);
    expect(metrics.failures[0]).toMatchObject({ thrown: 4, rejected: 0, hung: 0 });
    expect(metrics.failures[1]).toMatchObject({ thrown: 0, rejected: 0, hung: 0 });
  });

  it("that rejects causes no unhandled rejection, and each is counted", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const metrics = new CacheMetrics([collectorThat(() => Promise.reject(new Error("broken")))]);
    for (const method of METHODS) metrics[method]("m", 1);
    await settle();
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    expect(metrics.failures[0]).toMatchObject({ thrown: 0, rejected: 4, hung: 0 });
  });

  it("that hangs is skipped after a thousand pending calls, and called again once it answers", async () => {
    const answers: (() => void)[] = [];
    const metrics = new CacheMetrics([
      collectorThat(() => new Promise<void>((resolve) => answers.push(resolve))),
    ]);
    for (let n = 0; n < 1_500; n++) metrics.increment("m");
    expect(answers).toHaveLength(1_000);
    expect(metrics.failures[0]).toMatchObject({ hung: 500 });
    for (const answer of answers) answer();
    await settle();
    metrics.increment("m");
    expect(answers).toHaveLength(1_001);
  });

  it("whose promise is hostile is counted as well", async () => {
    const metrics = new CacheMetrics([
      collectorThat(
        () =>
          ({
            // biome-ignore lint/suspicious/noThenProperty: a fake promise
            get then() {
              throw new Error("hostile");
            },
          }) as never,
      ),
      collectorThat(
        () =>
          ({
            // biome-ignore lint/suspicious/noThenProperty: a promise that calls back twice
            then(done: () => void, failed: () => void) {
              done();
              failed();
            },
          }) as never,
      ),
    ]);
    metrics.increment("m");
    await settle();
    expect(metrics.failures.map(({ thrown, rejected }) => [thrown, rejected])).toEqual([
      [1, 0],
      [0, 0],
    ]);
  });

  it("is reported to the other collectors", async () => {
    const listening = new ListeningCollector();
    class Broken extends NoOpCollector {
      override increment(): void {
        throw new Error("broken");
      }
    }
    const metrics = new CacheMetrics([new Broken(), listening]);
    metrics.increment("m");
    metrics.increment("m");
    await settle();
    expect(listening.of("cache.collector_errors.total")).toEqual([
      ["increment", "cache.collector_errors.total", 2, { collector: "Broken", reason: "thrown" }],
    ]);
  });
});

describe("what caches count", () => {
  it("is reported in sums shortly after it happened, each event once", async () => {
    const listening = new ListeningCollector();
    const { source, telemetry, clock } = reportingCache();
    new CacheMetrics([listening]).attach(source);
    for (let n = 0; n < 5; n++) telemetry.hit("k");
    telemetry.looked("absent", false);
    telemetry.written("k", []);
    telemetry.deleted(["k"], 1);
    telemetry.invalidated({ all: true });
    expect(listening.calls).toEqual([]);
    await clock.advance(10);
    expect(listening.calls).toEqual([
      ["increment", "cache.gets.total", 5, { result: "hit" }],
      ["increment", "cache.gets.total", 1, { result: "miss" }],
      ["increment", "cache.hits.total", 5],
      ["increment", "cache.misses.total", 1],
      ["increment", "cache.sets.total", 1],
      ["increment", "cache.deletes.total", 1],
      ["increment", "cache.invalidations.total", 1],
    ]);
    await clock.advance(1_000);
    expect(listening.calls).toHaveLength(7);
    expect(clock.pending).toBe(0);
    telemetry.hit("k");
    await clock.advance(10);
    expect(listening.calls.slice(7)).toEqual([
      ["increment", "cache.gets.total", 1, { result: "hit" }],
      ["increment", "cache.hits.total", 1],
    ]);
  });

  it("reaches a collector that extends the no-op collector", async () => {
    const received: string[] = [];
    class Own extends NoOpCollector {
      override increment(metric?: string): void {
        received.push(String(metric));
      }
    }
    const { source, telemetry, clock } = reportingCache();
    new CacheMetrics([new Own()]).attach(source);
    telemetry.written("k", []);
    await clock.advance(10);
    expect(received).toEqual(["cache.sets.total"]);
  });

  it("wakes the feed, whichever metric it is", async () => {
    const { source, telemetry, clock } = reportingCache();
    new CacheMetrics([new ListeningCollector()]).attach(source);
    const things: (() => void)[] = [
      () => telemetry.hit("k"),
      () => telemetry.looked("k", true),
      () => telemetry.written("k", []),
      () => telemetry.finish("clear", undefined),
      () => telemetry.failed("get", new Error("down")),
      () => telemetry.observer(source.namespace as never).evicted(source.namespace as never, "k"),
    ];
    for (const thing of things) {
      expect(clock.pending).toBe(0);
      thing();
      expect(clock.pending, String(thing)).toBe(1);
      await clock.advance(10);
    }
  });

  it("includes errors by operation, type and class, never by message", async () => {
    class Odd extends Error {}
    const listening = new ListeningCollector();
    const { source, telemetry, clock } = reportingCache();
    new CacheMetrics([listening]).attach(source);
    telemetry.failed("get", new ConnectionError("lost user:42"));
    telemetry.failed("get", new ConnectionError("lost user:43"));
    telemetry.failed("set", new Odd("secret"));
    await clock.advance(10);
    expect(listening.of("cache.errors.total")).toEqual([
      [
        "increment",
        "cache.errors.total",
        2,
        { operation: "get", error_type: "connection", error_class: "ConnectionError" },
      ],
      ["increment", "cache.errors.total", 1, { operation: "set", error_type: "unknown", error_class: "Odd" }],
    ]);
  });

  it("includes durations one by one, with the number of calls that each stands for", async () => {
    const listening = new ListeningCollector();
    const { source, telemetry, clock } = reportingCache();
    new CacheMetrics([listening]).attach(source);
    telemetry.recorder.time("get", 0.002, 1);
    telemetry.recorder.time("set", 0.004, 4);
    await clock.advance(10);
    expect(listening.of("cache.operation_duration")).toEqual([
      ["histogram", "cache.operation_duration", 0.002, { operation: "get" }],
      ["histogram", "cache.operation_duration", 0.004, { operation: "set" }],
    ]);
    expect(listening.rates).toEqual([undefined, 0.25]);
  });

  it("includes a sample of very many durations, which stands for all", async () => {
    const listening = new ListeningCollector();
    const { source, telemetry, clock } = reportingCache();
    new CacheMetrics([listening]).attach(source);
    for (let n = 0; n < 2_000; n++) telemetry.recorder.time("get", 0.001, 1);
    await clock.advance(10);
    expect(listening.rates).toHaveLength(500);
    expect(listening.rates.reduce<number>((sum, rate) => sum + 1 / (rate ?? 1), 0)).toBeCloseTo(2_000);
  });

  it("is summed over caches, including those that have left and come back", async () => {
    const listening = new ListeningCollector();
    const [a, b] = [reportingCache(), reportingCache()];
    const metrics = new CacheMetrics([listening]);
    const leave = metrics.attach(a.source);
    metrics.attach(b.source);
    a.telemetry.hit("k");
    b.telemetry.hit("k");
    leave();
    expect(listening.total("cache.hits.total")).toBe(2);
    a.telemetry.hit("k");
    await a.clock.advance(10);
    expect(listening.total("cache.hits.total")).toBe(2);
    metrics.attach(a.source);
    a.telemetry.hit("k");
    await a.clock.advance(10);
    expect(listening.total("cache.hits.total")).toBe(4);
    expect(listening.total("cache.gets.total", "hit")).toBe(4);
  });

  it("includes gauges at every interval once collection has started", async () => {
    const listening = new ListeningCollector();
    const { source, telemetry, clock, store } = reportingCache();
    new CacheMetrics([listening]).attach(source);
    telemetry.hit("k");
    telemetry.recorder.start();
    await settle();
    const valuesOf = (metric: string): number[] => listening.of(metric).map(([, , value]) => value);
    expect(valuesOf("cache.hit_rate")).toEqual([1]);
    expect([valuesOf("cache.keys_count"), valuesOf("cache.size_bytes")]).toEqual([[3], [700]]);
    store.keys = 9;
    store.breaker = true;
    telemetry.looked("k", false);
    await clock.advance(10_000);
    expect(valuesOf("cache.hit_rate")).toEqual([1, 0.5]);
    expect(valuesOf("cache.keys_count")).toEqual([3, 9]);
    expect(valuesOf("cache.circuit_breaker_open")).toEqual([0, 1]);
    store.fails = true;
    await clock.advance(10_000);
    expect(valuesOf("cache.keys_count")).toEqual([3, 9]);
    expect(valuesOf("cache.hit_rate")).toHaveLength(3);
  });

  it("is reported at once by flush, which also flushes buffering collectors, even failing ones", async () => {
    const flushed: string[] = [];
    const lasting = Object.assign(new ListeningCollector(), {
      flush: () => Promise.reject(new Error("down")),
      close: () => void flushed.push("closed"),
    });
    const { source, telemetry } = reportingCache();
    const metrics = new CacheMetrics([lasting]);
    metrics.attach(source);
    telemetry.hit("k");
    await metrics.flush();
    expect(lasting.total("cache.hits.total")).toBe(1);
    telemetry.hit("k");
    await metrics.close();
    expect(lasting.total("cache.hits.total")).toBe(2);
    expect(flushed).toEqual(["closed"]);
  });

  it("is flushed and closed within 15 seconds if a collector hangs, and the others are closed at once", async () => {
    const clock = new ManualClock();
    const closed: string[] = [];
    const hang = () => new Promise<void>(() => {});
    const hanging = Object.assign(new ListeningCollector(), { flush: hang, close: hang });
    const lasting = Object.assign(new ListeningCollector(), { close: () => void closed.push("other") });
    const metrics = new CacheMetrics([hanging, lasting], clock);
    for (const method of ["flush", "close"] as const) {
      let isOver = false;
      const over = metrics[method]().then(() => {
        isOver = true;
      });
      await clock.advance(14_999);
      expect(isOver).toBe(false);
      await clock.advance(1);
      await over;
    }
    expect(closed).toEqual(["other"]);
    expect(clock.pending).toBe(0);
  });
});
