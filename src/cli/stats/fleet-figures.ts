// Derived from the fleet's history: rates, curves, and the change between two readings.
import type { FleetMinute, FleetStats } from "../../core/stats.ts";
import { toWire } from "../../core/wire.ts";

const MINUTE_MS = 60_000;

/** Average since the first minute with data. `now`: the store's time. */
export function operationsPerSecond({ history, totalOperations }: FleetStats, now: number): number {
  const [first] = history;
  if (first === undefined) return 0;
  return totalOperations / Math.max(1, (now - Date.parse(first.at)) / 1_000);
}

/** For JSON output. Without the uptime, which would be that of this command. */
export function statsJson(stats: FleetStats, now: number): Readonly<Record<string, unknown>> {
  const { history, uptime_seconds: _, ...figures } = toWire(stats);
  return {
    ...figures,
    key_count: stats.totalKeys,
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

const COUNTS = ["totalOperations", "totalHits", "totalMisses", "totalErrors"] as const;
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
