// PullCollector in the registries of the two client libraries, each the real package.
import * as successor from "@prometheus-io/client";
import * as original from "prom-client";
import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import { ConfigError } from "../../../src/core/errors.ts";
import { METRICS } from "../../../src/metrics/catalogue.ts";
import { CacheMetrics } from "../../../src/metrics/collectors/cache-metrics.ts";
import { PullCollector, type PullCollectorOptions } from "../../../src/metrics/prometheus/pull.ts";
import type { MetricRegistry } from "../../../src/metrics/prometheus/registry.ts";
import { readPage } from "../../metrics/exposition-page.ts";
import { reportingCache } from "../../metrics/reporting-cache.ts";
import { promtool, startPrometheus } from "../../support/prometheus.ts";
import { until } from "../../support/until.ts";

/** The API that both have in common. */
interface Library {
  readonly Registry: {
    new (): LibraryRegistry;
    readonly OPENMETRICS_CONTENT_TYPE: string;
  };
  readonly AggregatorRegistry: { aggregate(readings: readonly unknown[]): MetricRegistry };
  readonly Counter: new (options: {
    name: string;
    help: string;
    registers: readonly unknown[];
  }) => {
    inc(): void;
  };
}

interface LibraryRegistry extends MetricRegistry {
  getMetricsAsArray(): readonly unknown[];
  getMetricsAsJSON(): Promise<readonly unknown[]>;
  getSingleMetric(name: string): unknown;
  setContentType(type: string): void;
  setDefaultLabels(labels: object): void;
  resetMetrics(): void;
  clear(): void;
}

const LIBRARIES: [name: string, library: Library][] = [
  ["prom-client", original as unknown as Library],
  ["@prometheus-io/client", successor as unknown as Library],
];

function pulled(registry: MetricRegistry, options: PullCollectorOptions = {}) {
  const collector = new PullCollector({ registry, namespace: "shop", ...options });
  onTestFinished(() => collector.close());
  const cache = reportingCache();
  const metrics = new CacheMetrics([collector]);
  metrics.attach(cache.source);
  return { collector, metrics, ...cache };
}

it("registries of both libraries have the expected type", () => {
  expectTypeOf<original.Registry>().toExtend<MetricRegistry>();
  expectTypeOf<successor.Registry>().toExtend<MetricRegistry>();
});

it("the registry defaults, also with null, to that of the maintained library", async () => {
  const name = "defaults_cache_gets_total";
  for (const options of [{}, { registry: null }]) {
    const collector = new PullCollector({ namespace: "defaults", ...options });
    expect(successor.register.getSingleMetric(name)).toBeDefined();
    expect(original.register.getSingleMetric(name)).toBeUndefined();
    await collector.close();
    expect(successor.register.getSingleMetric(name)).toBeUndefined();
  }
});

it("a real Prometheus scrapes the OpenMetrics of a registry", async () => {
  const registry = new successor.Registry(successor.Registry.OPENMETRICS_CONTENT_TYPE);
  const { collector, telemetry, metrics } = pulled(registry, { port: 0 });
  telemetry.hit("k");
  telemetry.recorder.time("get", 0.3, 1);
  metrics.increment("orders");
  const prometheus = await startPrometheus((await collector.listening()).port);
  onTestFinished(() => prometheus.stop());
  const sees = (expr: string) =>
    until(async () => (await prometheus.query(expr))[0]?.value === 1, { what: `${expr} is 1` });
  await sees('shop_cache_gets_total{result="hit"}');
  await sees("shop_orders_total");
  await sees('shop_cache_operation_duration_seconds_bucket{operation="get",le="0.5"}');
});

describe.each(LIBRARIES)("a registry of %s", (_, { AggregatorRegistry, Counter, Registry }) => {
  const openMetrics = (): LibraryRegistry => {
    const registry = new Registry();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    return registry;
  };

  it("renders the same series next to the user's own, as parsed by promtool", async () => {
    const registry = new Registry();
    new Counter({ name: "orders_total", help: "Orders.", registers: [registry] }).inc();
    const { collector, telemetry, metrics } = pulled(registry, { labels: { region: 'e"u\\\n' } });
    telemetry.hit("k");
    telemetry.recorder.time("get", 0.3, 1);
    metrics.gauge("heat", 1.5, { room: 'a"\nb 1' });
    const page = await collector.metrics();
    const { series } = readPage(page);
    const region = String.raw`region="e\"u\\\n"`;
    expect(series.get("orders_total")).toBe(1);
    expect(series.get(`shop_cache_gets_total{${region},result="hit"}`)).toBe(1);
    expect(
      series.get(`shop_cache_operation_duration_seconds_bucket{le="0.5",operation="get",${region}}`),
    ).toBe(1);
    expect(series.get(`shop_heat{${region},${String.raw`room="a\"\nb 1"`}}`)).toBe(1.5);
    expect(await registry.getMetricsAsJSON()).toHaveLength(METRICS.length + 2);
    expect(registry.getSingleMetric("shop_cache_gets_total")).toBeDefined();
    // The only complaint is about the name keys_count, which is specified.
    expect((await promtool(["check", "metrics"], page)).output.trim().split("\n")).toEqual([
      expect.stringContaining("shop_cache_keys_count"),
    ]);
  });

  it("adds its default labels, which are overridden by explicit ones", async () => {
    const registry = new Registry();
    registry.setDefaultLabels({ app: "web", region: "us" });
    const { collector, telemetry } = pulled(registry, { labels: { region: "eu" } });
    telemetry.hit("k");
    expect(
      readPage(await collector.metrics()).series.get('shop_cache_hits_total{app="web",region="eu"}'),
    ).toBe(1);
  });

  it("is summed over the worker processes of a cluster", async () => {
    const readings = await Promise.all(
      [1, 2].map(async (hits) => {
        const registry = new Registry();
        const { telemetry, store } = pulled(registry);
        for (let hit = 0; hit < hits; hit++) telemetry.hit("k");
        telemetry.recorder.time("get", 0.3, hits);
        store.waiting = hits;
        return registry.getMetricsAsJSON();
      }),
    );
    const { series } = readPage(await AggregatorRegistry.aggregate(readings).metrics());
    expect(series.get('shop_cache_gets_total{result="hit"}')).toBe(3);
    expect(series.get('shop_cache_operation_duration_seconds_bucket{le="0.5",operation="get"}')).toBe(3);
    expect(series.get("shop_cache_pool_waiting")).toBe(3);
    expect(series.get("shop_cache_keys_count")).toBe(3);
  });

  it("supports OpenMetrics as well", async () => {
    const { collector, telemetry } = pulled(openMetrics());
    telemetry.hit("k");
    const page = await collector.metrics();
    expect(page).toContain('# TYPE shop_cache_gets counter\nshop_cache_gets_total{result="hit"} 1');
    expect(page.endsWith("# EOF\n")).toBe(true);
    expect(collector.contentType).toContain("openmetrics");
  });

  it("is left as it was found, even after it has rendered OpenMetrics and so renamed counters", async () => {
    const registry = openMetrics();
    const { collector, metrics } = pulled(registry);
    metrics.increment("orders.total");
    await collector.metrics();
    await collector.close();
    expect(registry.getMetricsAsArray()).toEqual([]);
    expect(() => new PullCollector({ registry, namespace: "shop" })).not.toThrow();
  });

  it("keeps counting under a name that it has changed", async () => {
    const { collector, metrics } = pulled(openMetrics());
    metrics.increment("orders.total");
    await collector.metrics();
    metrics.increment("orders.total");
    expect(await collector.metrics()).toContain("shop_orders_total 2\n");
    expect(collector.dropped).toBe(0);
  });

  it("that was cleared meanwhile keeps what others have registered since", async () => {
    const registry = new Registry();
    const { collector } = pulled(registry);
    registry.clear();
    pulled(registry);
    await collector.close();
    expect(registry.getMetricsAsArray()).toHaveLength(METRICS.length);
  });

  it("that already has such a metric is an error, and nothing is left half done", () => {
    const registry = new Registry();
    const first = new PullCollector({ registry, namespace: "a" });
    expect(() => new PullCollector({ registry, namespace: "a" })).toThrow(ConfigError);
    expect(registry.getMetricsAsArray()).toHaveLength(METRICS.length);
    expect(() => new PullCollector({ registry, namespace: "b" })).not.toThrow();
    expect(first.dropped).toBe(0);
  });

  it("that has one such metric in the middle keeps it, and an error names it", () => {
    const registry = new Registry();
    new Counter({ name: "shop_cache_sets_total", help: "Of somebody else.", registers: [registry] });
    const made = (): unknown => new PullCollector({ registry, namespace: "shop" });
    expect(made).toThrow(ConfigError);
    expect(made).toThrow("shop_cache_sets_total");
    expect(registry.getMetricsAsArray()).toHaveLength(1);
  });

  it("that is reset forgets what it was given directly, and keeps what caches have counted", async () => {
    const registry = new Registry();
    const { collector, telemetry, metrics } = pulled(registry);
    telemetry.hit("k");
    metrics.increment("orders");
    registry.resetMetrics();
    const { series } = readPage(await collector.metrics());
    expect(series.get("shop_cache_hits_total")).toBe(1);
    expect(series.has("shop_orders")).toBe(false);
  });
});
