// xcache stats --functions and --processes: what the processes report about themselves.
import type { FunctionStats, ProcessStats } from "../../core/stats.ts";
import { toWire } from "../../core/wire.ts";
import type { CommandContext } from "../command-spec.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Session } from "../session.ts";
import { tableLines } from "../terminal/display-width.ts";
import { escapeControls } from "../terminal/escape.ts";
import { durationText, latencyText } from "../terminal/format-duration.ts";
import { bytesText, countText, percentText, rateText } from "../terminal/format-number.ts";

interface ActivityView {
  /** Seconds. */
  readonly since: number;
  readonly showsFunctions: boolean;
}

export async function showActivity(
  { out }: CommandContext,
  { cache, namespace }: Session,
  { since, showsFunctions }: ActivityView,
): Promise<ExitCode> {
  const { functions, processes } = await cache.getActivity({ since });
  if (out.json) await out.jsonLine(showsFunctions ? toWire({ functions }) : toWire({ processes }));
  else if (showsFunctions) {
    if (functions.length > 0) await out.lines(tableLines(functionRows(functions), RIGHT));
    else out.note("no calls of cached functions in this period");
  } else {
    const now = namespace.records.now();
    if (processes.length > 0) await out.lines(tableLines(processRows(processes, now), RIGHT));
    else out.note("no process has reported in the last minute; processes report only with enable_metrics");
  }
  return EXIT.ok;
}

/** Every column but the first. */
const RIGHT = [1, 2, 3, 4, 5, 6, 7];

function functionRows(functions: readonly FunctionStats[]): readonly (readonly string[])[] {
  return [
    ["FUNCTION", "HIT RATE", "CALLS", "LOADS", "COALESCED", "STALE", "LOAD P95", "TTL"],
    ...functions.map((each) => [
      escapeControls(each.name),
      percentText(each.hitRate),
      countText(each.calls),
      countText(each.loads),
      countText(each.coalesced),
      countText(each.staleServed),
      latencyText(each.p95LoadTime),
      each.ttlSeconds === 0 ? "-" : durationText(each.ttlSeconds),
    ]),
  ];
}

function processRows(processes: readonly ProcessStats[], now: number): readonly (readonly string[])[] {
  return [
    ["PROCESS", "HIT RATE", "IN PROCESS", "OPS/S", "P95", "HEAP", "BREAKER", "SEEN"],
    ...processes.map((each) => [
      `${escapeControls(each.host)} ${each.pid}`,
      percentText(each.hitRate),
      percentText(each.totalHits === 0 ? 0 : 1 - each.totalStoreHits / each.totalHits),
      rateText(each.operationsPerSecond),
      latencyText(each.p95),
      bytesText(each.heapBytes),
      escapeControls(each.circuitBreaker),
      `${durationText(Math.max(0.001, (now - Date.parse(each.seenAt)) / 1_000))} ago`,
    ]),
  ];
}
