// Formats the statistics as text.
import type { FleetStats } from "../../core/stats.ts";
import { tableLines } from "../terminal/display-width.ts";
import { latencyText } from "../terminal/format-duration.ts";
import { bytesText, countText, percentText, rateText, sparkline } from "../terminal/format-number.ts";
import type { Output } from "../terminal/output.ts";
import { intervals, operationsPerSecond } from "./fleet-figures.ts";

const CURVE_WIDTH = 30;

export function statsLines(
  { data }: Pick<Output, "data">,
  stats: FleetStats,
  now: number,
): readonly string[] {
  const { bold, cyan, dim } = data;
  const parts = intervals(stats, now, CURVE_WIDTH);
  const hasHistory = stats.history.length > 0;
  const rates = sparkline(
    parts.map(({ hitRate }) => hitRate),
    CURVE_WIDTH,
    { most: 1 },
  );
  const operations = sparkline(
    parts.map((part) => part.operations),
    CURVE_WIDTH,
  );
  const whole = stats.scope === "server" ? "on the whole server" : "";
  const about = stats.approximate ? "about " : "";
  const rows = [
    [
      "hit rate",
      bold(percentText(stats.hitRate)),
      `${countText(stats.totalHits)} hits, ${countText(stats.totalMisses)} misses`,
      hasHistory ? cyan(rates) : "",
    ],
    [
      "operations",
      bold(countText(stats.totalOperations)),
      `${rateText(operationsPerSecond(stats, now))}/s`,
      hasHistory ? cyan(operations) : "",
    ],
    ["latency", bold(latencyText(stats.avgResponseTime)), latencies(stats)],
    ["errors", (stats.totalErrors > 0 ? data.red : bold)(countText(stats.totalErrors)), ""],
    ["keys", bold(`${about}${countText(stats.totalKeys)}`), whole],
    ["memory", bold(`${about}${bytesText(stats.totalMemoryBytes)}`), whole],
    [
      "changes",
      bold(countText(stats.totalSets)),
      `sets, ${countText(stats.totalDeletes)} deletes, ${countText(stats.totalInvalidations)} invalidations, ${countText(stats.totalEvictions)} evictions`,
    ],
    ["processes", bold(countText(stats.processes)), dim(`since ${timeText(stats.since)}`)],
  ];
  return tableLines(rows);
}

const latencies = ({ p50, p95, p99 }: FleetStats): string =>
  `p50 ${latencyText(p50)}, p95 ${latencyText(p95)}, p99 ${latencyText(p99)}`;

/** To the minute, in UTC. */
const timeText = (iso: string): string => `${iso.slice(0, 16).replace("T", " ")} UTC`;

export const NO_HISTORY =
  "no data for this period: processes report only with enable_metrics and the same prefix";
