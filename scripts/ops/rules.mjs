// The alert rules for Prometheus: the nine situations that deserve attention, in the series of the catalogue.

/**
 * @typedef {Readonly<Record<string, { readonly exposition: string; readonly help: string }>>} Catalogue
 * @typedef {{ name: string; expr: string; for: string; severity: "warning" | "critical"; summary: string; description: string }} Rule
 */

/**
 * The full name of a metric.
 * @param {Catalogue} catalogue
 * @param {string} namespace
 */
export function seriesNames(catalogue, namespace) {
  /** @param {string} id */
  return (id) => {
    const metric = catalogue[id];
    if (metric === undefined) throw new Error(`the catalogue has no metric ${id}`);
    return namespace === "" ? metric.exposition : `${namespace}_${metric.exposition}`;
  };
}

const BY = "by (job, instance)";

/**
 * @param {Catalogue} catalogue
 * @param {string} namespace
 * @returns {Rule[]}
 */
export function alertRules(catalogue, namespace) {
  const series = seriesNames(catalogue, namespace);
  const duration = series("operationDuration");
  const errors = series("errors");
  const outOfReach = `${errors}{error_type=~"connection|timeout"}`;
  return [
    {
      name: "XCacheLowHitRate",
      expr: `sum ${BY} (rate(${series("gets")}{result="hit"}[5m])) / sum ${BY} (rate(${series("gets")}[5m])) < 0.7`,
      for: "10m",
      severity: "warning",
      summary: "Fewer than 70 % of the keys asked for are in the cache",
      description:
        "The hit rate is {{ $value | humanizePercentage }}. Look at evictions, lifetimes and recent deployments.",
    },
    {
      name: "XCacheSlowOperations",
      expr: `sum ${BY} (rate(${duration}_sum[5m])) / sum ${BY} (rate(${duration}_count[5m])) > 0.1`,
      for: "5m",
      severity: "warning",
      summary: "Cache operations take more than 100 ms on average",
      description:
        "An operation takes {{ $value | humanizeDuration }}. Loads of getOrSet count; compare by operation.",
    },
    {
      name: "XCacheHighErrorRate",
      expr: `sum ${BY} (rate(${errors}[5m])) / sum ${BY} (rate(${duration}_count[5m])) > 0.01`,
      for: "5m",
      severity: "warning",
      summary: "More than 1 % of the cache operations fail",
      description:
        "{{ $value | humanizePercentage }} of the operations fail. The labels of the errors say how.",
    },
    {
      name: "XCacheStoreConnectionFailures",
      // A series that appears with its first error has nothing to rise from: the second half detects that one.
      expr: `sum ${BY} (increase(${outOfReach}[5m])) > 0 or sum ${BY} (${outOfReach} unless ${outOfReach} offset 5m) > 0`,
      for: "0m",
      severity: "critical",
      summary: "The store of the cache was not reached or did not answer in time",
      description: "About {{ $value | humanize }} calls failed to reach the store in the last five minutes.",
    },
    {
      name: "XCacheCircuitBreakerOpen",
      expr: `max ${BY} (${series("circuitBreakerOpen")}) == 1`,
      for: "0m",
      severity: "critical",
      summary: "The circuit breaker of the cache is open",
      description:
        "The store failed repeatedly and is left alone. Direct operations fail, loads run uncached.",
    },
    {
      name: "XCachePoolExhausted",
      expr: `max ${BY} (${series("poolWaiting")}) > 0`,
      for: "1m",
      severity: "critical",
      summary: "Calls wait for a connection to the store",
      description:
        "{{ $value | humanize }} calls wait. Look at the server and the network, or raise pool_size.",
    },
    {
      name: "XCacheHighMemoryUsage",
      expr: `max ${BY} (${series("memoryUsage")}) > 0.8`,
      for: "5m",
      severity: "warning",
      summary: "The memory store is more than 80 % full",
      description: "{{ $value | humanizePercentage }} of its bound is in use; beyond it entries are evicted.",
    },
    {
      name: "XCacheHighPoolUtilization",
      expr: `max ${BY} (${series("poolUtilization")}) > 0.9`,
      for: "5m",
      severity: "warning",
      summary: "More than 90 % of the connections to the store take no more calls",
      description:
        "{{ $value | humanizePercentage }} of the connections are away or clogged. Look at the server and the network.",
    },
    {
      name: "XCacheHighEvictionRate",
      expr: `sum ${BY} (rate(${series("evictions")}[5m])) > 10`,
      for: "10m",
      severity: "warning",
      summary: "The cache drops more than 10 entries a second to make room",
      description:
        "{{ $value | humanize }} entries a second are evicted. Give the store more room, or keep less in it.",
    },
    {
      name: "XCacheFeedSilent",
      expr: `min ${BY} (${series("feedAlive")}) == 0`,
      for: "1m",
      severity: "critical",
      summary: "A database feed is silent, so reads bypass the cache",
      description:
        "Answers are right, but the database carries the whole load. The health check of the process has the reason.",
    },
  ];
}

/**
 * A string in the quotes that need no escaping; none of ours contains both kinds.
 * @param {string} text
 */
const quoted = (text) => (text.includes('"') ? `'${text}'` : `"${text}"`);

/**
 * A file of rules.
 * @param {Catalogue} catalogue
 * @param {string} namespace
 */
export function rulesFile(catalogue, namespace) {
  const rules = alertRules(catalogue, namespace).map((rule) =>
    [
      `      - alert: ${rule.name}`,
      `        expr: ${quoted(rule.expr)}`,
      `        for: ${rule.for}`,
      "        labels:",
      `          severity: ${rule.severity}`,
      "        annotations:",
      `          summary: ${quoted(rule.summary)}`,
      `          description: ${quoted(rule.description)}`,
    ].join("\n"),
  );
  return `# Written by scripts/ops/ops.mjs from the catalogue of metrics; thresholds are made to be changed.\ngroups:\n  - name: xcache\n    rules:\n${rules.join("\n")}\n`;
}
