// The dashboard and the alert rules: generated from the catalogue, accepted by promtool, and correct.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { panels } from "../../scripts/ops/dashboard.mjs";
import { opsFiles } from "../../scripts/ops/ops.mjs";
import { alertRules } from "../../scripts/ops/rules.mjs";
import { CATALOGUE, METRICS } from "../../src/metrics/catalogue.ts";
import { promtool } from "../support/prometheus.ts";
import { runFolder } from "../support/run-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(runFolder(), "ops-"));
afterAll(() => rmSync(folder, { recursive: true }));

const rulesPath = join(ROOT, "ops/prometheus/xcache.rules.yml");

function written(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

describe("ops/", () => {
  it.each(Object.entries(opsFiles(CATALOGUE)))("%s is what scripts/ops/ops.mjs writes", (path, text) => {
    expect(readFileSync(join(ROOT, "ops", path), "utf8")).toBe(text);
  });

  it("follows another namespace", () => {
    for (const text of Object.values(opsFiles(CATALOGUE, "shop"))) {
      expect(text).toContain("shop_cache_gets_total");
      expect(text).not.toContain("xcache_cache");
    }
  });
});

/** Names of series in an expression. */
const seriesIn = (expr: string): string[] => expr.match(/\bxcache_cache_\w+/g) ?? [];
const known = new Set(
  METRICS.flatMap(({ exposition, type }) =>
    (type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]).map((end) => `xcache_${exposition}${end}`),
  ),
);

describe("the dashboard", () => {
  const shown = panels(CATALOGUE, "xcache");

  it("starts with the hit rate and has the panels that explain it", () => {
    const titles = shown.map(({ title }) => title).join("\n");
    expect(titles.startsWith("Hit rate\n")).toBe(true);
    for (const what of [
      /latency/i,
      /errors/i,
      /breaker/i,
      /inside the process/i,
      /evictions/i,
      /keys/i,
      /size/i,
    ]) {
      expect(titles).toMatch(what);
    }
  });

  it("queries only series of the catalogue, with valid Prometheus expressions", async () => {
    const queries = shown.flatMap((panel) => panel.queries.map(({ expr }) => expr));
    for (const expr of queries) {
      expect(seriesIn(expr).length, expr).toBeGreaterThan(0);
      for (const name of seriesIn(expr)) expect(known).toContain(name);
      expect(expr).toContain('job=~"$job",instance=~"$instance"');
    }
    const rules = queries.map((expr, at) => ({
      record: `panel:${at}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$\w+/g, ".*"),
    }));
    const path = written("panels.json", { groups: [{ name: "panels", rules }] });
    const { status, output } = await promtool(["check", "rules", path]);
    expect(output).toContain(`SUCCESS: ${queries.length} rules found`);
    expect(status).toBe(0);
  });

  it("lets the reader choose job and instance", () => {
    const { templating } = JSON.parse(opsFiles(CATALOGUE)["grafana/xcache.json"] ?? "") as {
      templating: { list: { name: string }[] };
    };
    expect(templating.list.map(({ name }) => name)).toEqual(["datasource", "job", "instance"]);
  });
});

const AT = 'job="app",instance="a:1"';
const DURATION = "xcache_cache_operation_duration_seconds";

interface Situation {
  /** Series of an hour, a value a minute, in promtool's notation. */
  readonly series: Readonly<Record<string, string>>;
  /** Whether the alert fires after the given number of minutes. */
  readonly fires: Readonly<Record<string, boolean>>;
}

/** Each alert in the situation it is for, and in a harmless one that looks similar. */
const SITUATIONS: Readonly<Record<string, readonly Situation[]>> = {
  XCacheLowHitRate: [
    {
      series: {
        [`xcache_cache_gets_total{${AT},result="hit"}`]: "0+690x60",
        [`xcache_cache_gets_total{${AT},result="miss"}`]: "0+310x60",
      },
      fires: { "5m": false, "12m": true },
    },
    {
      series: {
        [`xcache_cache_gets_total{${AT},result="hit"}`]: "0+710x60",
        [`xcache_cache_gets_total{${AT},result="miss"}`]: "0+290x60",
      },
      fires: { "30m": false },
    },
    {
      series: {
        [`xcache_cache_gets_total{${AT},result="hit"}`]: "0x60",
        [`xcache_cache_gets_total{${AT},result="miss"}`]: "0x60",
      },
      fires: { "30m": false },
    },
  ],
  XCacheSlowOperations: [
    {
      series: {
        [`${DURATION}_sum{${AT},operation="get"}`]: "0+11x60",
        [`${DURATION}_count{${AT},operation="get"}`]: "0+100x60",
      },
      fires: { "3m": false, "8m": true },
    },
    {
      series: {
        [`${DURATION}_sum{${AT},operation="get"}`]: "0+9x60",
        [`${DURATION}_count{${AT},operation="get"}`]: "0+100x60",
      },
      fires: { "30m": false },
    },
  ],
  XCacheHighErrorRate: [
    {
      series: {
        [`xcache_cache_errors_total{${AT},operation="get",error_type="codec"}`]: "0+11x60",
        [`${DURATION}_count{${AT},operation="get"}`]: "0+1000x60",
      },
      fires: { "3m": false, "8m": true },
    },
    {
      series: {
        [`xcache_cache_errors_total{${AT},operation="get",error_type="codec"}`]: "0+9x60",
        [`${DURATION}_count{${AT},operation="get"}`]: "0+1000x60",
      },
      fires: { "30m": false },
    },
  ],
  XCacheStoreConnectionFailures: [
    {
      series: { [`xcache_cache_errors_total{${AT},error_type="connection"}`]: "_ _ _ _ _ _ _ _ _ _ 1x50" },
      fires: { "9m": false, "11m": true, "30m": false },
    },
    {
      series: { [`xcache_cache_errors_total{${AT},error_type="timeout"}`]: "5x20 6x40" },
      fires: { "15m": false, "22m": true, "40m": false },
    },
    {
      series: { [`xcache_cache_errors_total{${AT},error_type="codec"}`]: "0+5x60" },
      fires: { "30m": false },
    },
  ],
  XCacheCircuitBreakerOpen: [
    {
      series: { [`xcache_cache_circuit_breaker_open{${AT}}`]: "0x9 1x9 0x40" },
      fires: { "5m": false, "12m": true, "25m": false },
    },
  ],
  XCachePoolExhausted: [
    {
      series: { [`xcache_cache_pool_waiting{${AT}}`]: "0x9 3x20 0x30" },
      fires: { "10m": false, "12m": true, "40m": false },
    },
  ],
  XCacheHighMemoryUsage: [
    { series: { [`xcache_cache_memory_usage{${AT}}`]: "0.81x60" }, fires: { "3m": false, "6m": true } },
    { series: { [`xcache_cache_memory_usage{${AT}}`]: "0.8x60" }, fires: { "30m": false } },
  ],
  XCacheHighPoolUtilization: [
    { series: { [`xcache_cache_pool_utilization{${AT}}`]: "0.95x60" }, fires: { "3m": false, "6m": true } },
    { series: { [`xcache_cache_pool_utilization{${AT}}`]: "0.9x60" }, fires: { "30m": false } },
  ],
  XCacheHighEvictionRate: [
    { series: { [`xcache_cache_evictions_total{${AT}}`]: "0+660x60" }, fires: { "5m": false, "16m": true } },
    { series: { [`xcache_cache_evictions_total{${AT}}`]: "0+540x60" }, fires: { "30m": false } },
  ],
  XCacheFeedSilent: [
    {
      series: { [`xcache_cache_feed_alive{${AT}}`]: "1x9 0x20 1x30" },
      fires: { "9m": false, "10m": false, "12m": true, "40m": false },
    },
  ],
};

describe("the alert rules", () => {
  const rules = alertRules(CATALOGUE, "xcache");

  it("are accepted by promtool, and cover ten situations", async () => {
    const { status, output } = await promtool(["check", "rules", rulesPath]);
    expect(output).toContain("SUCCESS: 10 rules found");
    expect(status).toBe(0);
    expect(rules.map(({ name }) => name)).toEqual(Object.keys(SITUATIONS));
  });

  it("query only series of the catalogue", () => {
    for (const { expr } of rules) for (const name of seriesIn(expr)) expect(known).toContain(name);
  });

  it("fire in their situation, after their stated time, and stay silent in the harmless one", async () => {
    const tests = Object.entries(SITUATIONS).flatMap(([alertname, situations]) =>
      situations.map(({ series, fires }) => ({
        interval: "1m",
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        alert_rule_test: Object.entries(fires).map(([eval_time, fires]) => ({
          alertname,
          eval_time,
          exp_alerts: fires ? [{ exp_labels: labelsOf(alertname) }] : [],
        })),
      })),
    );
    // promtool compares words as well, and these hold the value: the test below reads them.
    const plain = { groups: [{ name: "xcache", rules: rules.map(plainRule) }] };
    written("plain.json", plain);
    const path = written("tests.json", { rule_files: ["plain.json"], evaluation_interval: "1m", tests });
    const { status, output } = await promtool(["test", "rules", path]);
    expect(output).toContain("SUCCESS");
    expect(status).toBe(0);
  });

  it("state the value in their text", async () => {
    const path = written("words.json", {
      rule_files: [rulesPath],
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: [{ series: `xcache_cache_memory_usage{${AT}}`, values: "0.85x60" }],
          alert_rule_test: [
            {
              alertname: "XCacheHighMemoryUsage",
              eval_time: "10m",
              exp_alerts: [
                {
                  exp_labels: labelsOf("XCacheHighMemoryUsage"),
                  exp_annotations: {
                    summary: "The memory store is more than 80 % full",
                    description: "85% of its bound is in use; beyond it entries are evicted.",
                  },
                },
              ],
            },
          ],
        },
      ],
    });
    const { output } = await promtool(["test", "rules", path]);
    expect(output).toContain("SUCCESS");
  });

  const labelsOf = (alertname: string) => ({
    job: "app",
    instance: "a:1",
    severity: rules.find(({ name }) => name === alertname)?.severity ?? "",
  });

  const plainRule = ({ name, expr, for: duration, severity }: (typeof rules)[number]) => ({
    alert: name,
    expr,
    for: duration,
    labels: { severity },
  });
});
