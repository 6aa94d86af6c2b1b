import { EventEmitter, once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { Registry } from "prom-client";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { ConfigError, ConnectionError } from "../../../src/core/errors.ts";
import { METRICS } from "../../../src/metrics/catalogue.ts";
import { CacheMetrics, NoOpCollector } from "../../../src/metrics/collectors/cache-metrics.ts";
import { PullCollector, type PullCollectorOptions } from "../../../src/metrics/prometheus/pull.ts";
import { BuiltInRegistry, type MetricRegistry } from "../../../src/metrics/prometheus/registry.ts";
import { LATENCY_BUCKETS } from "../../../src/metrics/recording/histogram.ts";
import { VERSION } from "../../../src/version.ts";
import { codePoint } from "../../support/code-point.ts";
import { until } from "../../support/until.ts";
import { readPage } from "../exposition-page.ts";
import { reportingCache } from "../reporting-cache.ts";

function pulled(options: PullCollectorOptions = {}) {
  const collector = new PullCollector({ registry: new BuiltInRegistry(), namespace: "shop", ...options });
  onTestFinished(() => collector.close());
  const cache = reportingCache();
  const metrics = new CacheMetrics([collector]);
  const leave = metrics.attach(cache.source);
  const page = async () => readPage(await collector.metrics());
  return { collector, metrics, leave, page, ...cache };
}

async function ask(port: number, path: string, method = "GET") {
  const asked = request({ port, host: "127.0.0.1", path, method, agent: false }).end();
  const [response] = await once(asked, "response");
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe("the series", () => {
  it("are those of the specification, with its labels", async () => {
    const { telemetry, page } = pulled();
    telemetry.hit("k");
    telemetry.hit("k");
    telemetry.looked("absent", false);
    telemetry.written("k", []);
    telemetry.recorder.time("get", 0.0002, 1);
    const { series, types } = await page();
    expect(series.get('shop_cache_gets_total{result="hit"}')).toBe(2);
    expect(series.get('shop_cache_gets_total{result="miss"}')).toBe(1);
    expect(series.get("shop_cache_hit_rate")).toBeCloseTo(2 / 3);
    expect(series.get("shop_cache_sets_total")).toBe(1);
    expect(series.get("shop_cache_size_bytes")).toBe(700);
    expect(series.get("shop_cache_keys_count")).toBe(3);
    expect(series.get("shop_cache_deletes_total")).toBe(0);
    expect(series.get("shop_cache_invalidations_total")).toBe(0);
    expect(series.get("shop_cache_evictions_total")).toBe(0);
    expect(series.get(`shop_cache_info{backend="memory",version="${VERSION}"}`)).toBe(1);
    expect(Object.fromEntries(types)).toMatchObject({
      shop_cache_gets_total: "counter",
      shop_cache_sets_total: "counter",
      shop_cache_errors_total: "counter",
      shop_cache_hit_rate: "gauge",
      shop_cache_size_bytes: "gauge",
      shop_cache_operation_duration_seconds: "histogram",
    });
  });

  it("have one HELP and one TYPE for every metric of the catalogue, and nothing else", async () => {
    const { types, helps } = await pulled().page();
    expect([...types]).toEqual(METRICS.map(({ exposition, type }) => [`shop_${exposition}`, type]));
    expect([...helps]).toEqual(METRICS.map(({ exposition, help }) => [`shop_${exposition}`, help]));
  });

  it("of durations are buckets that add up, from 0.05 ms to 10 s", async () => {
    const { telemetry, page } = pulled();
    telemetry.recorder.time("get", 0.00004, 3);
    telemetry.recorder.time("get", 0.3, 2);
    telemetry.recorder.time("get", 100, 1);
    const { series } = await page();
    const name = "shop_cache_operation_duration_seconds";
    const bucket = (le: string) => series.get(`${name}_bucket{le="${le}",operation="get"}`);
    expect(LATENCY_BUCKETS.map((bound) => bucket(String(bound)))).toEqual(
      LATENCY_BUCKETS.map((bound) => (bound < 0.3 ? 3 : 5)),
    );
    expect(bucket("+Inf")).toBe(6);
    expect(series.get(`${name}_count{operation="get"}`)).toBe(6);
    expect(series.get(`${name}_sum{operation="get"}`)).toBeCloseTo(100.60012);
  });

  it("accept namespace, subsystem and constant labels", async () => {
    const { page, metrics } = pulled({ namespace: "my-app", subsystem: "api", labels: { region: "eu" } });
    metrics.gauge("cache.health", 1, { host: "a" });
    const { series } = await page();
    expect(series.get('my_app_api_cache_gets_total{region="eu",result="hit"}')).toBe(0);
    expect(series.get('my_app_api_cache_hit_rate{region="eu"}')).toBe(0);
    expect(series.get('my_app_api_cache_health{host="a",region="eu"}')).toBe(1);
    for (const id of series.keys()) expect(id).toContain('region="eu"');
  });

  it("count errors by operation, type and class", async () => {
    const { telemetry, page } = pulled();
    telemetry.failed("get", new ConnectionError("lost"));
    const labels = 'error_class="ConnectionError",error_type="connection",operation="get"';
    expect((await page()).series.get(`shop_cache_errors_total{${labels}}`)).toBe(1);
  });

  it("never decrease when a cache leaves, while its gauges disappear with it", async () => {
    const { telemetry, page, leave } = pulled();
    telemetry.hit("k");
    leave();
    const { series } = await page();
    expect(series.get("shop_cache_hits_total")).toBe(1);
    expect(series.has("shop_cache_keys_count")).toBe(false);
    expect(series.has("shop_cache_circuit_breaker_open")).toBe(false);
  });

  it("show the state of the store", async () => {
    const { store, page } = pulled();
    Object.assign(store, { breaker: true, pool: 0.75, waiting: 4, memory: 0.5 });
    const { series } = await page();
    expect(series.get("shop_cache_circuit_breaker_open")).toBe(1);
    expect(series.get("shop_cache_pool_utilization")).toBe(0.75);
    expect(series.get("shop_cache_pool_waiting")).toBe(4);
    expect(series.get("shop_cache_memory_usage")).toBe(0.5);
  });

  it("lack only the size if the store does not report it, which is asked at most every five seconds", async () => {
    const { store, page, clock } = pulled();
    await Promise.all([page(), page()]);
    expect(store.asked).toBe(1);
    store.fails = true;
    await clock.advance(5_000);
    const { series } = await page();
    expect(store.asked).toBe(2);
    expect(series.has("shop_cache_keys_count")).toBe(false);
    expect(series.get("shop_cache_hits_total")).toBe(0);
  });

  it("count what collectors did not accept", async () => {
    const collector = new PullCollector({ registry: new BuiltInRegistry() });
    class Broken extends NoOpCollector {
      override gauge(): void {
        throw new Error("broken");
      }
    }
    new CacheMetrics([new Broken(), collector]).gauge("m", 1);
    const { series } = readPage(await collector.metrics());
    expect(series.get('xcache_cache_collector_errors_total{collector="Broken",reason="thrown"}')).toBe(1);
  });
});

describe("the application's own metrics", () => {
  it("accept any name on first use, dots as underscores", async () => {
    const { metrics, page } = pulled();
    metrics.gauge("cache.health", 1);
    metrics.gauge("cache.health", 0);
    metrics.increment("cache.health_check_errors");
    metrics.increment("cache.health_check_errors", 2);
    metrics.gauge("cache.error_rate.get", 0.5);
    metrics.timing("cache.health_check_duration", 0.02);
    metrics.histogram("orders.lines", 3, { shop: "a" });
    const { series, types } = await page();
    expect(series.get("shop_cache_health")).toBe(0);
    expect(series.get("shop_cache_health_check_errors")).toBe(3);
    expect(series.get("shop_cache_error_rate_get")).toBe(0.5);
    expect(series.get("shop_cache_health_check_duration_sum")).toBe(0.02);
    expect(series.get('shop_orders_lines_count{shop="a"}')).toBe(1);
    expect(types.get("shop_cache_health_check_duration")).toBe("histogram");
  });

  it("are added to what the library counts under the same name", async () => {
    const { metrics, telemetry, page } = pulled();
    telemetry.failed("get", new ConnectionError("lost"));
    const tags = { operation: "get", error_type: "connection", error_class: "ConnectionError" };
    metrics.increment("cache.errors.total", 2, tags);
    metrics.increment("cache.errors.total", 1, { ...tags, operation: "mine" });
    const labels = 'error_class="ConnectionError",error_type="connection"';
    const { series } = await page();
    expect(series.get(`shop_cache_errors_total{${labels},operation="get"}`)).toBe(3);
    expect(series.get(`shop_cache_errors_total{${labels},operation="mine"}`)).toBe(1);
  });

  it("whose type or labels differ from the first use are dropped and counted, never thrown", async () => {
    const { metrics, collector, page } = pulled();
    metrics.increment("orders", 1, { shop: "a" });
    const clashes: (() => void)[] = [
      () => metrics.gauge("orders", 1, { shop: "a" }),
      () => metrics.increment("orders", 1),
      () => metrics.increment("orders", 1, { store: "a" }),
      () => metrics.increment("orders", 1, { shop: "a", more: "b" }),
      () => metrics.increment("orders", -1, { shop: "a" }),
      () => metrics.increment("orders", Number.NaN, { shop: "a" }),
      () => metrics.gauge("heat", Number.POSITIVE_INFINITY),
      () => metrics.increment("", 1),
      () => metrics.increment(undefined as never),
      () => metrics.timing("durations", 1, { le: "1" }),
    ];
    for (const clash of clashes) clash();
    expect(collector.dropped).toBe(clashes.length);
    const { series } = await page();
    expect(series.get('shop_orders{shop="a"}')).toBe(1);
    expect([...series.keys()].filter((id) => id.startsWith("shop_orders"))).toHaveLength(1);
  });

  it("with labels that never repeat stop at two thousand series", async () => {
    const { metrics, collector, page } = pulled();
    for (let user = 0; user < 2_100; user++) metrics.increment("visits", 1, { user: String(user) });
    expect(collector.dropped).toBe(100);
    expect([...(await page()).series.keys()].filter((id) => id.startsWith("shop_visits"))).toHaveLength(
      2_000,
    );
  });

  it("keep the page parseable, whatever their names and labels", async () => {
    const anything = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.constantFrom('"', "\\", "\n", "\\n", "{}", " 1\nx 2"),
    );
    await fc.assert(
      fc.asyncProperty(
        anything,
        anything,
        anything,
        fc.double({ noNaN: true }),
        async (name, label, value, number) => {
          const collector = new PullCollector({
            registry: new BuiltInRegistry(),
            labels: { constant: value },
          });
          collector.gauge(name, number, { [label]: value });
          const { types } = readPage(await collector.metrics());
          expect(types.size).toBe(METRICS.length + 1 - collector.dropped);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("input that would spoil a series", () => {
  it("is dropped: an observation that stands for no number of others", async () => {
    const { collector, page } = pulled();
    for (const rate of [0, -1, 2, Number.NaN, Number.POSITIVE_INFINITY])
      collector.histogram("sizes", 1, {}, rate);
    collector.histogram("sizes", 1, {}, 0.5);
    expect(collector.dropped).toBe(5);
    expect((await page()).series.get("shop_sizes_count")).toBe(2);
  });

  it("is made harmless: lone surrogates, which would all look the same, and very long labels", async () => {
    const { collector, page } = pulled();
    for (const half of ["\ud800", "\ud801", "\udc00"]) collector.increment("visits", 1, { from: half });
    collector.increment("visits", 1, { from: "x".repeat(1_000_000) });
    collector.increment("visits", 1, { from: `${"x".repeat(1_023)}\u{1f600}` });
    const bytes = Buffer.from(await collector.metrics());
    expect(bytes.length).toBeLessThan(20_000);
    const { series } = readPage(bytes.toString());
    expect(series.get('shop_visits{from="\ufffd"}')).toBe(3);
    expect((await page()).series.get('shop_visits{from="\ufffd"}')).toBe(3);
  });

  it("from a second collector in the same registry is a typed error with a remedy", () => {
    const registry = new Registry();
    pulled({ registry });
    expect(() => pulled({ registry })).toThrow(
      expect.objectContaining({
        code: "CONFIG_INVALID",
        message: expect.stringContaining("the registry rejected the metric shop_"),
        hint: expect.stringContaining("create it once and pass it to each"),
      }),
    );
  });

  it("is kept out after close: nothing is registered again", async () => {
    const registry = new Registry();
    const { collector, metrics } = pulled({ registry });
    metrics.gauge("heat", 1);
    await collector.close();
    metrics.gauge("heat", 2);
    metrics.increment("cache.errors.total", 1, { operation: "o", error_type: "t", error_class: "c" });
    expect(registry.getMetricsAsArray()).toEqual([]);
    expect(collector.dropped).toBe(2);
  });
});

describe("the endpoint", () => {
  it("answers GET and HEAD of /metrics on its port, and nothing else", async () => {
    const { collector, telemetry } = pulled({ port: 0 });
    telemetry.hit("k");
    const { host, port } = await collector.listening();
    expect(host).toBe("127.0.0.1");
    const page = await ask(port, "/metrics");
    expect(page.status).toBe(200);
    expect(page.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(readPage(page.body).series.get("shop_cache_hits_total")).toBe(1);
    expect((await ask(port, "/metrics?x=1")).status).toBe(200);
    expect(await ask(port, "/metrics", "HEAD")).toMatchObject({ status: 200, body: "" });
    const refused = await ask(port, "/metrics", "POST");
    expect([refused.status, refused.headers.allow]).toEqual([405, "GET, HEAD"]);
    for (const path of ["/", "/metrics/", "/METRICS", "/..%2fmetrics"]) {
      expect((await ask(port, path)).status, path).toBe(404);
    }
  });

  it("on a port in use fails with an error that names it, or a warning if the error is not awaited", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const collector = new PullCollector({ registry: new BuiltInRegistry(), port });
    new PullCollector({ registry: new BuiltInRegistry(), port });
    await expect(collector.listening()).rejects.toThrow(ConfigError);
    await expect(collector.listening()).rejects.toThrow(`127.0.0.1:${port}, which is already in use`);
    await until(() => warn.mock.calls.length > 0, { what: "the other one is warned of" });
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringContaining(String(port)), "XCacheWarning");
    await collector.close();
  });

  it("frees the port on close, even with open connections, and removes the series from the registry", async () => {
    const registry = new Registry();
    const asked = new EventEmitter();
    const { collector, source } = pulled({ port: 0, registry });
    const storeState = vi.spyOn(source, "storeState");
    storeState.mockImplementationOnce(() => {
      asked.emit("asked");
      throw new Error("not shown");
    });
    const { port } = await collector.listening();
    const idle = connect(port, "127.0.0.1");
    await once(idle, "connect");
    const gone = once(idle, "close");
    expect(registry.getMetricsAsArray()).toHaveLength(METRICS.length);
    const answer = ask(port, "/metrics");
    await once(asked, "asked");
    await collector.close();
    expect((await answer).status).toBe(200);
    await gone;
    await collector.close();
    expect(registry.getMetricsAsArray()).toEqual([]);
    await expect(ask(port, "/metrics")).rejects.toThrow("ECONNREFUSED");
  });

  it("does not exist without a port, and waiting for it rejects with the reason", async () => {
    await expect(pulled().collector.listening()).rejects.toMatchObject({ code: "FEATURE_DISABLED" });
  });

  it("reveals nothing about a failing registry", async () => {
    const registry: MetricRegistry = {
      contentType: "text/plain",
      registerMetric: () => {},
      removeSingleMetric: () => {},
      metrics: () => Promise.reject(new Error("secret")),
    };
    const { collector } = pulled({ port: 0, registry });
    const { port } = await collector.listening();
    expect(await ask(port, "/metrics")).toMatchObject({ status: 500, body: "the metrics cannot be read\n" });
  });
});

describe("options", () => {
  it.each<[string, unknown]>([
    ["an invalid port", { port: 70_000 }],
    ["a fractional port", { port: 1.5 }],
    ["a port as a string", { port: "9090" }],
    ["an empty host, which would mean every address", { port: 0, host: "" }],
    ["a namespace that is not a string", { namespace: 5 }],
    ["labels that are not strings", { labels: { a: 5 } }],
    ["an invalid label name", { labels: { "a-b": "x" } }],
    ["a label that a metric already has", { labels: { operation: "x" } }],
    ["a label reserved by the server", { labels: { __name__: "x" } }],
    ["a value that is not a registry", { registry: {} }],
    ["an unknown one", { nmespace: "x" }],
  ])("%s is refused", (_, options) => {
    expect(() => new PullCollector(options as PullCollectorOptions)).toThrow(ConfigError);
  });
});
