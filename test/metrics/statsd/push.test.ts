import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { ConfigError } from "../../../src/core/errors.ts";
import { CacheMetrics } from "../../../src/metrics/collectors/cache-metrics.ts";
import { decimal, MOST_BYTES } from "../../../src/metrics/statsd/datagram.ts";
import { PushCollector, type PushCollectorOptions } from "../../../src/metrics/statsd/push.ts";
import { ManualClock, settle } from "../../../src/testing/manual-clock.ts";
import { reportingCache } from "../reporting-cache.ts";
import { readLine, statsdDaemon } from "../statsd-daemon.ts";

async function pushing(options: PushCollectorOptions = {}) {
  const daemon = await statsdDaemon();
  const clock = new ManualClock();
  const collector = new PushCollector({ port: daemon.port, prefix: "app.cache", ...options }, clock);
  onTestFinished(() => collector.close());
  /** What has arrived once everything is sent. */
  const sent = async (count: number): Promise<string[]> => {
    await collector.flush();
    await daemon.received(count);
    return daemon.texts();
  };
  return { daemon, clock, collector, sent };
}

describe("the lines", () => {
  it("for a cache's operations are those of the specification", async () => {
    const { collector, sent } = await pushing({ useTags: true });
    const { telemetry, source, clock } = reportingCache();
    new CacheMetrics([collector]).attach(source);
    telemetry.hit("k");
    telemetry.looked("absent", false);
    telemetry.written("k", []);
    telemetry.recorder.time("get", 0.00025, 1);
    telemetry.recorder.time("set", 0.5, 1);
    telemetry.recorder.start();
    await clock.advance(10);
    const lines = await sent(14);
    for (const line of [
      "app.cache.gets:1|c|#result:hit",
      "app.cache.gets:1|c|#result:miss",
      "app.cache.sets:1|c",
      "app.cache.hit_rate:0.5|g",
      "app.cache.size_bytes:700|g",
      "app.cache.keys_count:3|g",
      "app.cache.operation_duration:0.00025|h|#operation:get",
      "app.cache.operation_duration:0.5|h|#operation:set",
      "app.cache.hits:1|c",
      "app.cache.misses:1|c",
    ]) {
      expect(lines).toContain(line);
    }
    for (const line of lines) readLine(line);
  });

  it("have no tags unless enabled", async () => {
    const { collector, sent } = await pushing();
    collector.increment("cache.gets.total", 1, { result: "hit" });
    collector.histogram("cache.operation_duration", 0.001, { operation: "get" });
    expect(await sent(2)).toEqual(["app.cache.gets:1|c", "app.cache.operation_duration:0.001|h"]);
  });

  it("for the application's own metrics omit cache and total, and send times in seconds", async () => {
    const { collector, sent } = await pushing({ prefix: "p" });
    collector.increment("cache.health_check_errors");
    collector.gauge("cache.error_rate.get", 0.25);
    collector.timing("cache.health_check_duration", 1.5);
    collector.increment("orders.placed.total", 2);
    collector.increment("cache");
    expect(await sent(5)).toEqual([
      "p.health_check_errors:1|c",
      "p.error_rate.get:0.25|g",
      "p.health_check_duration:1.5|h",
      "p.orders.placed:2|c",
      "p.cache:1|c",
    ]);
  });

  it("set a negative gauge instead of decrementing it", async () => {
    const { collector, sent } = await pushing({ prefix: "" });
    collector.gauge("heat", -3);
    expect(await sent(2)).toEqual(["heat:0|g", "heat:-3|g"]);
  });

  it("never have an exponent", () => {
    const cases: [number, string][] = [
      [1e-7, "0.0000001"],
      [-1.5e-8, "-0.000000015"],
      [1e-12, "0"],
      [-1e-12, "0"],
      [1e21, "1000000000000000000000"],
      [0.1, "0.1"],
      [-0, "0"],
    ];
    for (const [value, text] of cases) expect(decimal(value)).toBe(text);
    for (const none of [Number.NaN, Number.POSITIVE_INFINITY]) expect(decimal(none)).toBeUndefined();
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const text = decimal(value) ?? "";
        expect(text).toMatch(/^-?\d+(\.\d+)?$/);
        expect(Math.abs(Number(text) - value)).toBeLessThanOrEqual(Math.max(1e-10, Math.abs(value) * 1e-15));
      }),
    );
  });

  it("contain exactly one measurement, whatever names and tags contain", async () => {
    const { collector, daemon, sent } = await pushing({ useTags: true });
    const hostile = ["a\nb:1|c", "x|g", "#", "@0.1", "a:b", "a,b", " ", "é\u2028ü", "\u0000", "..", ""];
    for (const name of hostile) collector.increment(`n${name}`, 1, { [`k${name}`]: name });
    await sent(hostile.length);
    expect(daemon.lines()).toHaveLength(hostile.length);
    for (const { type, value } of daemon.lines()) expect([type, value]).toEqual(["c", 1]);
  });

  it("that cannot be written are dropped and counted", async () => {
    const { collector, sent } = await pushing();
    collector.gauge("heat", Number.NaN);
    collector.increment("");
    collector.increment("n".repeat(2_000));
    collector.increment("good");
    expect(await sent(1)).toEqual(["app.cache.good:1|c"]);
    expect(collector.dropped).toBe(3);
  });
});

describe("a sample rate", () => {
  it("sends that share of counts, marked by |@, and loses nothing to rounding", async () => {
    const { collector, sent } = await pushing({ sampleRate: 0.1, prefix: "p", useTags: true });
    for (let n = 0; n < 20; n++) collector.increment("orders", 7, { shop: "a" });
    const lines = (await sent(14)).map(readLine);
    expect(lines.every(({ rate, tags }) => rate === 0.1 && tags.shop === "a")).toBe(true);
    expect(lines.reduce((sum, { value, rate }) => sum + value / rate, 0)).toBeCloseTo(140);
  });

  it("sends about that share of observations, and every gauge", async () => {
    const { collector, sent, daemon } = await pushing({ sampleRate: 0.25, prefix: "p" });
    for (let n = 0; n < 400; n++) collector.histogram("sizes", n);
    collector.gauge("heat", 5);
    await sent(50);
    await daemon.received(1);
    const lines = daemon.lines();
    const sizes = lines.filter(({ name }) => name === "p.sizes");
    expect(sizes.length).toBeGreaterThan(60);
    expect(sizes.length).toBeLessThan(140);
    expect(sizes.every(({ rate }) => rate === 0.25)).toBe(true);
    expect(lines.find(({ name }) => name === "p.heat")).toMatchObject({ value: 5, rate: 1 });
  });

  it("is never sent as 0, by which a daemon would divide, nor as an invalid share", async () => {
    const { collector, sent } = await pushing({ sampleRate: 1 });
    collector.histogram("sizes", 1, {}, 1e-15);
    for (const rate of [0, -0.5, 1.5, Number.NaN]) collector.histogram("sizes", 1, {}, rate);
    expect(await sent(1)).toEqual(["app.cache.sizes:1|h|@0.0000000001"]);
    expect(collector.dropped).toBe(4);
  });

  it("is multiplied by the number of calls that an observation stands for", async () => {
    const { collector, sent } = await pushing({ prefix: "p" });
    collector.histogram("sizes", 1, undefined, 0.25);
    expect(await sent(1)).toEqual(["p.sizes:1|h|@0.25"]);
  });
});

describe("datagrams", () => {
  it("contain many lines, are at most 1432 bytes long, and split no line", async () => {
    const { collector, daemon, sent } = await pushing({ useTags: true });
    for (let n = 0; n < 500; n++) collector.increment("orders", n + 1, { shop: "ü".repeat(n % 80) });
    await sent(500);
    expect(Math.max(...daemon.datagrams.map(({ length }) => length))).toBeLessThanOrEqual(MOST_BYTES);
    expect(daemon.datagrams.length).toBeLessThan(100);
    expect(daemon.lines().map(({ value }) => value)).toEqual(Array.from({ length: 500 }, (_, n) => n + 1));
  });

  it("are sent within 100 ms, without a timer when nothing is measured", async () => {
    const { collector, daemon, clock } = await pushing();
    expect(clock.pending).toBe(0);
    collector.increment("a");
    collector.increment("b");
    expect(clock.pending).toBe(1);
    await clock.advance(100);
    await daemon.received(2);
    expect(daemon.datagrams).toHaveLength(1);
  });

  it("that are pending are sent by close, and a later measurement reopens the socket", async () => {
    const { collector, daemon } = await pushing({ prefix: "p" });
    collector.increment("a");
    await collector.close();
    await daemon.received(1);
    collector.increment("b");
    await collector.close();
    await daemon.received(2);
    expect(daemon.texts()).toEqual(["p.a:1|c", "p.b:1|c"]);
  });

  it("reach a daemon given by host name", async () => {
    const { collector, sent } = await pushing({ host: "localhost" });
    collector.increment("a");
    expect(await sent(1)).toEqual(["app.cache.a:1|c"]);
  });
});

describe("an absent daemon", () => {
  it("causes no error, and uses a bounded amount of memory", async () => {
    const clock = new ManualClock();
    const collector = new PushCollector({ port: 9 }, clock);
    for (let n = 0; n < 50_000; n++) collector.gauge(`some.long.enough.name.${n}`, n);
    await collector.flush();
    expect(collector.dropped).toBeGreaterThan(0);
    collector.increment("a");
    await collector.close();
  });

  it("whose name does not resolve is tried again a second later", async () => {
    const clock = new ManualClock();
    const collector = new PushCollector({ host: "no-such-host.invalid" }, clock);
    collector.increment("a");
    await collector.flush();
    expect(collector.dropped).toBe(1);
    collector.increment("a");
    await collector.flush();
    expect(collector.dropped).toBe(2);
    await clock.advance(1_000);
    collector.increment("a");
    const flushed = collector.flush();
    await settle();
    await flushed;
    expect(collector.dropped).toBe(3);
    await collector.close();
  });
});

describe("options", () => {
  it.each<[string, unknown]>([
    ["port 0", { port: 0 }],
    ["a host that is not a string", { host: 5 }],
    ["a sample rate of 0", { sampleRate: 0 }],
    ["a sample rate above 1", { sampleRate: 1.5 }],
    ["a timeout of 0", { timeout: 0 }],
    ["useTags that is neither true nor false", { useTags: "yes" }],
    ["an unknown one", { use_tags: true }],
  ])("%s is refused", (_, options) => {
    expect(() => new PushCollector(options as PushCollectorOptions)).toThrow(ConfigError);
  });
});
