// The exposition as Prometheus itself sees it: promtool parses it, and a real server scrapes it.
import { describe, expect, it, onTestFinished } from "vitest";
import { ConnectionError } from "../../../src/core/errors.ts";
import { FeedCounts } from "../../../src/db/feed/feed-status.ts";
import type { CacheForFeed } from "../../../src/db/feed.ts";
import { METRICS } from "../../../src/metrics/catalogue.ts";
import { CacheMetrics } from "../../../src/metrics/collectors/cache-metrics.ts";
import { PullCollector } from "../../../src/metrics/prometheus/pull.ts";
import { BuiltInRegistry } from "../../../src/metrics/prometheus/registry.ts";
import { reportingCache } from "../../metrics/reporting-cache.ts";
import { promtool, startPrometheus } from "../../support/prometheus.ts";
import { until } from "../../support/until.ts";

/** A collector with data in every metric of the catalogue. */
function usedCollector() {
  const registry = new BuiltInRegistry();
  const collector = new PullCollector({
    registry,
    namespace: "shop",
    port: 0,
    labels: { region: 'e"u\\\n' },
  });
  onTestFinished(() => collector.close());
  const { telemetry, source, store } = reportingCache();
  const metrics = new CacheMetrics([
    collector,
    {
      increment: () => Promise.resolve(),
      gauge() {
        throw new Error("broken");
      },
      histogram() {},
      timing() {},
    },
  ]);
  metrics.attach(source);
  for (let n = 0; n < 3; n++) telemetry.hit("k");
  telemetry.looked("absent", false);
  telemetry.failed("get", new ConnectionError("lost"));
  telemetry.recorder.time("get", 0.0002, 1);
  const feed = new FeedCounts({ cache: {} as CacheForFeed, metrics });
  feed.elected();
  feed.gap();
  feed.invalidated(1, 0.002);
  feed.alive(true);
  metrics.gauge("cache.health", 1);
  return { collector, telemetry, store };
}

describe("promtool check metrics", () => {
  it("complains about nothing but the name keys_count, which is specified", async () => {
    const { collector } = usedCollector();
    const { status, output } = await promtool(["check", "metrics"], await collector.metrics());
    expect(output.trim()).toBe(
      'shop_cache_keys_count non-histogram and non-summary metrics should not have "_count" suffix',
    );
    // 3 means style findings; a page that cannot be parsed is 1.
    expect(status).toBe(3);
  });

  it("rejects an invalid page, so that the test above is meaningful", async () => {
    expect((await promtool(["check", "metrics"], "shop_x{ 1\n")).status).toBe(1);
  });
});

describe("a real Prometheus", () => {
  it("scrapes every series, and sees them rise", async () => {
    const { collector, telemetry } = usedCollector();
    const prometheus = await startPrometheus((await collector.listening()).port);
    onTestFinished(() => prometheus.stop());
    const valueAt = async (expr: string): Promise<number | undefined> =>
      (await prometheus.query(expr))[0]?.value;
    const sees = (expr: string, value: number): Promise<unknown> =>
      until(async () => (await valueAt(expr)) === value, { what: `${expr} is ${value}` });
    await sees('shop_cache_gets_total{result="hit"}', 3);
    await sees('up{job="app"}', 1);
    await sees("shop_cache_hit_rate", 0.75);
    await sees('shop_cache_operation_duration_seconds_bucket{operation="get",le="0.00025"}', 1);
    await sees('shop_cache_errors_total{error_type="connection"}', 1);
    await sees("shop_cache_sets_total", 0);
    // Between two scrapes, one of which failed, a busy Prometheus may know nothing.
    const expected = METRICS.map(
      ({ exposition, type }) => `shop_${exposition}${type === "histogram" ? "_count" : ""}`,
    );
    await until(
      async () => {
        const series = await prometheus.query('{job="app"}');
        const names = new Set(series.map(({ metric }) => metric.__name__));
        const labelled = series.find(({ metric }) => metric.__name__ === "shop_cache_sets_total");
        return labelled?.metric.region === 'e"u\\\n' && expected.every((name) => names.has(name));
      },
      { what: `every one of ${expected.length} series is known` },
    );
    telemetry.hit("k");
    await sees('shop_cache_gets_total{result="hit"}', 4);
  });
});
