// The catalogue has every metric of the specification, and docs/reference/metrics.md agrees with the catalogue.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CATALOGUE, METRICS, type MetricSpec, metricNamed } from "../../src/metrics/catalogue.ts";
import { LATENCY_BUCKETS } from "../../src/metrics/recording/histogram.ts";
import { TRACED_OPERATIONS } from "../../src/metrics/tracing.ts";

const page = readFileSync(new URL("../../docs/reference/metrics.md", import.meta.url), "utf8");

const code = (text: string): string => `\`${text}\``;

function row({ dotted, exposition, datagram, type, labels, help }: MetricSpec): string {
  const cells = [
    code(dotted),
    code(`<namespace>_${exposition}`),
    code(`<prefix>.${datagram}`),
    type,
    labels.map(code).join(" "),
    help,
  ];
  return `| ${cells.join(" | ")} |`;
}

describe("the catalogue", () => {
  it.each([
    ["cache.gets.total", "counter"],
    ["cache.sets.total", "counter"],
    ["cache.deletes.total", "counter"],
    ["cache.hits.total", "counter"],
    ["cache.misses.total", "counter"],
    ["cache.hit_rate", "gauge"],
    ["cache.size_bytes", "gauge"],
    ["cache.keys_count", "gauge"],
    ["cache.operation_duration", "histogram"],
    ["cache.invalidations.total", "counter"],
    ["cache.errors.total", "counter"],
    ["cache.evictions.total", "counter"],
  ])("has %s as a %s", (dotted, type) => {
    expect(metricNamed(dotted)?.type).toBe(type);
  });

  it("has the names that the specification gives for Prometheus and StatsD", () => {
    const { gets, hitRate, operationDuration, sets, sizeBytes, keysCount, info } = CATALOGUE;
    expect(
      [gets, hitRate, operationDuration, sets, sizeBytes, keysCount, info].map((metric) => [
        metric.exposition,
        metric.datagram,
      ]),
    ).toEqual([
      ["cache_gets_total", "gets"],
      ["cache_hit_rate", "hit_rate"],
      ["cache_operation_duration_seconds", "operation_duration"],
      ["cache_sets_total", "sets"],
      ["cache_size_bytes", "size_bytes"],
      ["cache_keys_count", "keys_count"],
      ["cache_info", "info"],
    ]);
    expect(CATALOGUE.errors.labels).toEqual(["operation", "error_type", "error_class"]);
  });

  it("has each name once, and a sentence for each metric", () => {
    for (const name of ["dotted", "exposition", "datagram", "help"] as const) {
      expect(new Set(METRICS.map((metric) => metric[name])).size, name).toBe(METRICS.length);
    }
    for (const { help } of METRICS) expect(help).toMatch(/^[A-Z1][^|\n]*\.$/);
  });
});

describe("docs/reference/metrics.md", () => {
  it("has one row for each metric and no other", () => {
    expect(page.split("\n").filter((line) => line.startsWith("| `cache."))).toEqual(METRICS.map(row));
  });

  it("has the bounds of the buckets", () => {
    expect(page).toContain(`${LATENCY_BUCKETS.join(", ")} s`);
  });

  it("lists every traced operation", () => {
    expect(page).toContain(TRACED_OPERATIONS.map(code).join(" "));
  });
});
