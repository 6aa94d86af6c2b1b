// The Grafana dashboard: the hit rate first, then what explains it, in the series of the catalogue.
import { seriesNames } from "./rules.mjs";

/**
 * @typedef {import("./rules.mjs").Catalogue} Catalogue
 * @typedef {{ legend: string; expr: string }} Query
 * @typedef {{ title: string; help: string; unit: string; queries: Query[]; most?: number }} Panel
 */

const PICKED = 'job=~"$job",instance=~"$instance"';
const SPAN = "$__rate_interval";

/**
 * @param {Catalogue} catalogue
 * @param {string} namespace
 * @returns {Panel[]}
 */
export function panels(catalogue, namespace) {
  const series = seriesNames(catalogue, namespace);
  /** @param {string} id */
  const help = (id) => catalogue[id]?.help ?? "";
  /** @param {string} id @param {string} [more] */
  const rate = (id, more = "") => `rate(${series(id)}{${PICKED}${more}}[${SPAN}])`;
  const duration = series("operationDuration");
  /** @param {number} quantile */
  const quantile = (quantile) =>
    `histogram_quantile(${quantile}, sum by (le) (rate(${duration}_bucket{${PICKED}}[${SPAN}])))`;
  /** @param {string} id @param {string} how */
  const gauge = (id, how) => `${how} by (instance) (${series(id)}{${PICKED}})`;
  const gets = `sum(${rate("gets")})`;
  return [
    {
      title: "Hit rate",
      help: help("hitRate"),
      unit: "percentunit",
      most: 1,
      queries: [
        { legend: "all", expr: `sum(${rate("gets", ',result="hit"')}) / ${gets}` },
        {
          legend: "{{instance}}",
          expr: `sum by (instance) (${rate("gets", ',result="hit"')}) / sum by (instance) (${rate("gets")})`,
        },
      ],
    },
    {
      title: "Keys asked for",
      help: help("gets"),
      unit: "ops",
      queries: [{ legend: "{{result}}", expr: `sum by (result) (${rate("gets")})` }],
    },
    {
      title: "Latency",
      help: help("operationDuration"),
      unit: "s",
      queries: [0.5, 0.95, 0.99].map((each) => ({ legend: `p${each * 100}`, expr: quantile(each) })),
    },
    {
      title: "Latency by operation, p95",
      help: help("operationDuration"),
      unit: "s",
      queries: [
        {
          legend: "{{operation}}",
          expr: `histogram_quantile(0.95, sum by (le, operation) (rate(${duration}_bucket{${PICKED}}[${SPAN}])))`,
        },
      ],
    },
    {
      title: "Errors",
      help: help("errors"),
      unit: "ops",
      queries: [
        {
          legend: "{{operation}} {{error_type}} {{error_class}}",
          expr: `sum by (operation, error_type, error_class) (${rate("errors")})`,
        },
      ],
    },
    {
      title: "Circuit breaker open",
      help: help("circuitBreakerOpen"),
      unit: "short",
      most: 1,
      queries: [{ legend: "{{instance}}", expr: gauge("circuitBreakerOpen", "max") }],
    },
    {
      title: "Hits inside the process and from the store",
      help: help("storeHits"),
      unit: "ops",
      queries: [
        { legend: "in the process", expr: `sum(${rate("hits")}) - sum(${rate("storeHits")})` },
        { legend: "from the store", expr: `sum(${rate("storeHits")})` },
      ],
    },
    {
      title: "Writes, deletes, invalidations",
      help: `${help("sets")} ${help("deletes")} ${help("invalidations")}`,
      unit: "ops",
      queries: ["sets", "deletes", "invalidations"].map((id) => ({ legend: id, expr: `sum(${rate(id)})` })),
    },
    {
      title: "Evictions",
      help: help("evictions"),
      unit: "ops",
      queries: [{ legend: "{{instance}}", expr: `sum by (instance) (${rate("evictions")})` }],
    },
    {
      title: "Keys",
      help: help("keysCount"),
      unit: "short",
      queries: [{ legend: "{{instance}}", expr: gauge("keysCount", "max") }],
    },
    {
      title: "Size",
      help: help("sizeBytes"),
      unit: "bytes",
      queries: [{ legend: "{{instance}}", expr: gauge("sizeBytes", "max") }],
    },
    {
      title: "Memory bound in use",
      help: help("memoryUsage"),
      unit: "percentunit",
      most: 1,
      queries: [{ legend: "{{instance}}", expr: gauge("memoryUsage", "max") }],
    },
    {
      title: "Connections that take no more calls",
      help: help("poolUtilization"),
      unit: "percentunit",
      most: 1,
      queries: [{ legend: "{{instance}}", expr: gauge("poolUtilization", "max") }],
    },
    {
      title: "Calls waiting for a connection",
      help: help("poolWaiting"),
      unit: "short",
      queries: [{ legend: "{{instance}}", expr: gauge("poolWaiting", "max") }],
    },
    {
      title: "Measurements that collectors did not take",
      help: help("collectorErrors"),
      unit: "ops",
      queries: [
        {
          legend: "{{collector}} {{reason}}",
          expr: `sum by (collector, reason) (${rate("collectorErrors")})`,
        },
      ],
    },
    {
      title: "Database feed alive",
      help: help("feedAlive"),
      unit: "short",
      most: 1,
      queries: [{ legend: "{{instance}}", expr: gauge("feedAlive", "min") }],
    },
    {
      title: "Database feed lag",
      help: help("feedLag"),
      unit: "s",
      queries: [0.5, 0.99].map((share) => ({
        legend: `p${share * 100}`,
        expr: `histogram_quantile(${share}, sum by (le) (rate(${series("feedLag")}_bucket{${PICKED}}[${SPAN}])))`,
      })),
    },
    {
      title: "Database feed: transactions, gaps, leader changes",
      help: `${help("feedInvalidations")} ${help("feedGaps")}`,
      unit: "ops",
      queries: [
        { legend: "transactions", expr: `sum(${rate("feedInvalidations")})` },
        { legend: "gaps", expr: `sum(${rate("feedGaps")})` },
        { legend: "leader changes", expr: `sum(${rate("feedLeaderChanges")})` },
      ],
    },
  ];
}

const SOURCE = { type: "prometheus", uid: "$datasource" };

/** @param {Panel} panel @param {number} at */
function panelJson({ title, help, unit, most, queries }, at) {
  return {
    id: at + 1,
    type: "timeseries",
    title,
    description: help,
    datasource: SOURCE,
    gridPos: { h: 8, w: 12, x: (at % 2) * 12, y: Math.floor(at / 2) * 8 },
    fieldConfig: {
      defaults: { unit, min: 0, ...(most === undefined ? {} : { max: most }) },
      overrides: [],
    },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: SOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

/** @param {string} name @param {string} query */
const variable = (name, query) => ({
  name,
  type: "query",
  datasource: SOURCE,
  query: { query, refId: name },
  definition: query,
  refresh: 2,
  multi: true,
  includeAll: true,
  allValue: ".*",
  current: { selected: true, text: ["All"], value: ["$__all"] },
});

/**
 * @param {Catalogue} catalogue
 * @param {string} namespace
 */
export function dashboardFile(catalogue, namespace) {
  const gets = seriesNames(catalogue, namespace)("gets");
  const dashboard = {
    uid: "xcache",
    title: "xcache",
    tags: ["xcache", "cache"],
    schemaVersion: 39,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus", current: {} },
        variable("job", `label_values(${gets}, job)`),
        variable("instance", `label_values(${gets}{job=~"$job"}, instance)`),
      ],
    },
    panels: panels(catalogue, namespace).map(panelJson),
  };
  return `${jsonText(dashboard)}\n`;
}

/**
 * As the repository's formatter writes it: a list of plain values is on one line.
 * @param {unknown} value
 * @param {string} [indent]
 * @returns {string}
 */
function jsonText(value, indent = "") {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((item) => jsonText(item, deeper));
    if (value.every((item) => typeof item !== "object")) return `[${items.join(", ")}]`;
    return `[\n${items.map((item) => `${deeper}${item}`).join(",\n")}\n${indent}]`;
  }
  const fields = Object.entries(value).map(
    ([name, field]) => `${deeper}${JSON.stringify(name)}: ${jsonText(field, deeper)}`,
  );
  return fields.length === 0 ? "{}" : `{\n${fields.join(",\n")}\n${indent}}`;
}
