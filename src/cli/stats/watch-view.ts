// What watching shows: figures with curves and changes, redrawn in place, or one line at a time.
import type { FleetStats } from "../../core/stats.ts";
import { latencyText } from "../terminal/format-duration.ts";
import { bytesText, countText, percentText, rateText } from "../terminal/format-number.ts";
import type { Output } from "../terminal/output.ts";
import { sparkline } from "../terminal/sparkline.ts";
import { tableLines } from "../terminal/table.ts";
import type { WatchSeries } from "./watch-series.ts";

export interface WatchState {
  readonly address: string;
  readonly series: WatchSeries;
  readonly isPaused: boolean;
  readonly showsHelp: boolean;
  /** Why the latest look failed. */
  readonly trouble: string | undefined;
}

const HELP = [
  "p  pause and go on",
  "r  reset the curves and changes",
  "h  show and hide this help",
  "q  quit (so does Ctrl-C)",
  "",
  "The rate and hit rate are those of the last 15 seconds; processes add to the store every 10.",
];

export function watchLines(
  out: Output,
  { address, series, isPaused, showsHelp, trouble }: WatchState,
): readonly string[] {
  const { bold, cyan, dim, red, yellow } = out.data;
  const stats = series.latest;
  const state = trouble !== undefined ? red("unreachable") : isPaused ? yellow("paused") : "";
  const head = `${bold("xcache stats")} ${dim(address)} ${state}`.trimEnd();
  const keys = dim("p pause  r reset  h help  q quit");
  if (stats === undefined) return [head, "", ...(trouble === undefined ? [] : [red(trouble)]), keys];
  const width = Math.max(10, Math.min(60, out.columns - 50));
  const { points, since } = series;
  const point = points.at(-1);
  const curve = (figures: readonly (number | undefined)[], most?: number): string =>
    cyan(sparkline(figures, width, most === undefined ? {} : { most }));
  const rows = [
    [
      "hit rate",
      bold(percentText(point?.hitRate ?? stats.hitRate)),
      "",
      curve(
        points.map(({ hitRate }) => hitRate),
        1,
      ),
    ],
    [
      "ops/s",
      bold(rateText(point?.operationsPerSecond ?? 0)),
      change(since.operations, countText),
      curve(points.map((each) => each.operationsPerSecond)),
    ],
    [
      "latency",
      bold(latencyText(stats.avgResponseTime)),
      "",
      `p50 ${latencyText(stats.p50)}  p95 ${latencyText(stats.p95)}  p99 ${latencyText(stats.p99)}`,
    ],
    [
      "errors",
      (stats.totalErrors > 0 ? red : bold)(countText(stats.totalErrors)),
      change(since.errors, countText),
      "",
    ],
    [
      "keys",
      bold(countText(stats.totalKeys)),
      change(since.keys, countText),
      curve(points.map((each) => each.keys)),
    ],
    [
      "memory",
      bold(bytesText(stats.totalMemoryBytes)),
      change(since.bytes, bytesText),
      curve(points.map(({ bytes }) => bytes)),
    ],
    ["processes", bold(countText(stats.processes)), "", ""],
  ];
  const body = tableLines(rows, [1, 2]);
  return [
    head,
    "",
    ...body,
    "",
    ...(trouble === undefined ? [] : [red(trouble)]),
    ...(showsHelp ? HELP : [keys]),
  ];
}

/** With its sign; nothing where nothing changed. */
function change(by: number, text: (amount: number) => string): string {
  if (by === 0) return "";
  return `${by > 0 ? "+" : "-"}${text(Math.abs(by))}`;
}

/** The same on one line, for pipes and logs. */
export function watchLine(stats: FleetStats, series: WatchSeries, at: string): string {
  const point = series.points.at(-1);
  return [
    at,
    `hit_rate=${percentText(point?.hitRate ?? stats.hitRate).replace(" ", "")}`,
    `ops/s=${rateText(point?.operationsPerSecond ?? 0)}`,
    `p95=${latencyText(stats.p95).replace(" ", "")}`,
    `errors=${stats.totalErrors}`,
    `keys=${stats.totalKeys}`,
    `memory=${bytesText(stats.totalMemoryBytes).replace(" ", "")}`,
  ].join(" ");
}
