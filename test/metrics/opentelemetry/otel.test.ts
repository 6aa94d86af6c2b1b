import { metrics as otelMetrics } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, it, onTestFinished } from "vitest";
import { CacheMetrics } from "../../../src/metrics/collectors/cache-metrics.ts";
import { OtelCollector } from "../../../src/metrics/opentelemetry/otel.ts";
import { LATENCY_BUCKETS } from "../../../src/metrics/recording/histogram.ts";
import { reportingCache } from "../reporting-cache.ts";

/** A real SDK whose figures can be read. */
function sdk() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  const exported = async () => {
    await meterProvider.forceFlush();
    const all = exporter.getMetrics().at(-1)?.scopeMetrics ?? [];
    return {
      scopes: all.map(({ scope }) => scope.name),
      metrics: new Map(
        all.flatMap(({ metrics }) => metrics).map((metric) => [metric.descriptor.name, metric]),
      ),
    };
  };
  return { meterProvider, exported };
}

describe("OtelCollector", () => {
  it("records what a cache does under the names of the catalogue", async () => {
    const { meterProvider, exported } = sdk();
    const { telemetry, source, clock } = reportingCache();
    new CacheMetrics([new OtelCollector({ meterProvider })]).attach(source);
    telemetry.hit("k");
    telemetry.hit("k");
    telemetry.looked("absent", false);
    telemetry.recorder.time("get", 0.0002, 1);
    telemetry.recorder.start();
    await clock.advance(10);
    const { metrics, scopes } = await exported();
    expect(scopes).toEqual(["xcache"]);
    const gets = metrics.get("cache.gets.total");
    expect(gets?.dataPoints.map(({ attributes, value }) => [attributes, value])).toEqual([
      [{ result: "hit" }, 2],
      [{ result: "miss" }, 1],
    ]);
    expect(metrics.get("cache.hit_rate")?.dataPoints[0]?.value).toBeCloseTo(2 / 3);
    expect(metrics.get("cache.size_bytes")?.descriptor.unit).toBe("By");
    const durations = metrics.get("cache.operation_duration");
    expect(durations?.descriptor.unit).toBe("s");
    expect(durations?.dataPoints[0]).toMatchObject({
      attributes: { operation: "get" },
      value: { count: 1, sum: 0.0002, buckets: { boundaries: [...LATENCY_BUCKETS] } },
    });
  });

  it("accepts any name of the application, and drops and counts another type or a non-number", async () => {
    const { meterProvider, exported } = sdk();
    const collector = new OtelCollector({ meterProvider });
    collector.increment("orders", 2, { shop: "a" });
    collector.gauge("orders", 1);
    collector.increment("orders", -1);
    collector.gauge("heat", Number.NaN);
    collector.timing("wait", 0.5);
    expect(collector.dropped).toBe(3);
    const { metrics } = await exported();
    expect(metrics.get("orders")?.dataPoints).toHaveLength(1);
    expect(metrics.get("orders")?.dataPoints[0]).toMatchObject({ attributes: { shop: "a" }, value: 2 });
    expect(metrics.get("wait")?.descriptor.unit).toBe("s");
  });

  it("uses the provider that the application has registered", async () => {
    const { meterProvider, exported } = sdk();
    otelMetrics.setGlobalMeterProvider(meterProvider);
    onTestFinished(() => otelMetrics.disable());
    new OtelCollector().increment("orders");
    expect((await exported()).metrics.get("orders")?.dataPoints[0]?.value).toBe(1);
  });
});
