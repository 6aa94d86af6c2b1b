// What `stats --watch` displays: figures with curves and changes, redrawn in place or as one line per refresh.
import type { FleetStats } from "../../core/stats.ts";
import { tableLines } from "../terminal/display-width.ts";
import { latencyText } from "../terminal/format-duration.ts";
import { bytesText, countText, percentText, rateText, sparkline } from "../terminal/format-number.ts";
import type { Output } from "../terminal/output.ts";
import type { WatchSeries } from "./watch-series.ts";

export interface WatchState {
  readonly address: string;
  readonly series: WatchSeries;
  readonly isPaused: boolean;
  readonly showsHelp: boolean;
  /** Why the latest refresh failed. */
  readonly error: string | undefined;
}

const HELP = [
  "p  pause or resume",
  "r  reset curves and changes",
  "h  show or hide this help",
  "q  quit (so does Ctrl-C)",
  "",
  "Processes report every 10 seconds; rate and hit rate are those of the latest reports.",
];

export function watchLines(
  out: Output,
  { address, series, isPaused, showsHelp, error }: WatchState,
): readonly string[] {
  const { bold, cyan, dim, red, yellow } = out.data;
  const stats = series.latest;
  const state = error !== undefined ? red("unreachable") : isPaused ? yellow("paused") : "";
  const head = `${bold("xcache stats")} ${dim(address)} ${state}`.trimEnd();
  const keys = dim("p pause  r reset  h help  q quit");
  if (stats === undefined) return [head, "", ...(error === undefined ? [] : [red(error)]), keys];
  const width = Math.max(10, Math.min(60, out.columns - 50));
  const { points, changes } = series;
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
      changeText(changes.operations, countText),
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
      changeText(changes.errors, countText),
      "",
    ],
    [
      "keys",
      bold(countText(stats.totalKeys)),
      changeText(changes.keys, countText),
      curve(points.map((each) => each.keys)),
    ],
    [
      "memory",
      bold(bytesText(stats.totalMemoryBytes)),
      changeText(changes.bytes, bytesText),
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
    ...(error === undefined ? [] : [red(error)]),
    ...(showsHelp ? HELP : [keys]),
  ];
}

/** With its sign; empty if nothing changed. */
function changeText(by: number, text: (amount: number) => string): string {
  if (by === 0) return "";
  return `${by > 0 ? "+" : "-"}${text(Math.abs(by))}`;
}

/** One line for pipes and logs. */
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
