// Derived from the fleet's history: rates, curves, and the change between two readings.
import type { FleetMinute, FleetStats } from "../../core/stats.ts";
import { toWire } from "../../core/wire.ts";

const MINUTE_MS = 60_000;

/** The current rate, by what was reported in this minute and the one before. `now`: the store's time. */
export function operationsPerSecond({ history }: FleetStats, now: number): number {
  const from = (Math.floor(now / MINUTE_MS) - 1) * MINUTE_MS;
  const recent = history.filter(({ at }) => Date.parse(at) >= from);
  const seconds = recent.reduce((total, minute) => total + (minute.activeSeconds || 60), 0);
  return fleetRate(sum(recent, "totalOperations"), seconds, recent);
}

/**
 * The rate of all processes together. Reports arrive at any time, each about the seconds since the one before: what counts is
 * that time, not when they arrived. `minutes` tell how many processes there are.
 */
export function fleetRate(count: number, activeSeconds: number, minutes: readonly FleetMinute[]): number {
  // A process that lives for milliseconds has no rate worth the name.
  const seconds = Math.max(1, activeSeconds);
  return (count / seconds) * Math.max(1, ...minutes.map(({ processes }) => processes));
}

/** For JSON output. `uptime_seconds`: since the first minute of the period in which something was counted. */
export function statsJson(stats: FleetStats, now: number): Readonly<Record<string, unknown>> {
  const { history, uptime_seconds: _, ...figures } = toWire(stats);
  const [first] = stats.history;
  return {
    ...figures,
    key_count: stats.totalKeys,
    uptime_seconds: first === undefined ? 0 : Math.max(0, now - Date.parse(first.at)) / 1_000,
    operations_per_second: operationsPerSecond(stats, now),
    history,
  };
}

/** One bar of a curve. */
export interface Interval {
  readonly operations: number;
  /** Undefined without reads. */
  readonly hitRate: number | undefined;
}

/** Splits the covered period into at most `limit` equal intervals. */
export function intervals({ since, history }: FleetStats, now: number, limit: number): readonly Interval[] {
  const first = Math.floor(Date.parse(since) / MINUTE_MS);
  const minutes = Math.max(1, Math.floor(now / MINUTE_MS) - first + 1);
  const size = Math.ceil(minutes / limit);
  const parts: FleetMinute[][] = Array.from({ length: Math.ceil(minutes / size) }, () => []);
  for (const minute of history) {
    parts[Math.floor((Math.floor(Date.parse(minute.at) / MINUTE_MS) - first) / size)]?.push(minute);
  }
  return parts.map((part) => {
    const hits = sum(part, "totalHits");
    const reads = hits + sum(part, "totalMisses");
    return { operations: sum(part, "totalOperations"), hitRate: reads === 0 ? undefined : hits / reads };
  });
}

const COUNTS = ["totalOperations", "totalHits", "totalMisses", "totalErrors", "activeSeconds"] as const;
type CountName = (typeof COUNTS)[number];
export type Counts = Readonly<Record<CountName, number>>;

const sum = (minutes: readonly FleetMinute[], name: CountName): number =>
  minutes.reduce((total, minute) => total + minute[name], 0);

/**
 * What was counted between two readings. Compared minute by minute, since old minutes drop out of the totals.
 */
export function countedBetween(before: FleetStats, after: FleetStats): Counts {
  const known = new Map(before.history.map((minute) => [minute.at, minute]));
  const oldest = before.history[0]?.at ?? "";
  const recent = after.history.filter(({ at }) => at >= oldest);
  const counts = COUNTS.map((name) => {
    const grown = recent.map((minute) => minute[name] - (known.get(minute.at)?.[name] ?? 0));
    return [
      name,
      Math.max(
        0,
        grown.reduce((total, each) => total + each, 0),
      ),
    ] as const;
  });
  return Object.fromEntries(counts) as Record<CountName, number>;
}
