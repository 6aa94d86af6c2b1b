// Figures drawn from the fleet's history: rates, changes between two looks, and curves.
import type { FleetMinute, FleetStats } from "../../core/stats.ts";
import { toWire } from "../../core/wire.ts";

const MINUTE_MS = 60_000;

/** Operations a second since the first minute in which something was counted. `now`: the store's time. */
export function operationsPerSecond({ history, totalOperations }: FleetStats, now: number): number {
  const [first] = history;
  if (first === undefined) return 0;
  return totalOperations / Math.max(1, (now - Date.parse(first.at)) / 1_000);
}

/** As it stands in JSON. Without the uptime, which is that of this very command. */
export function statsJson(stats: FleetStats, now: number): Readonly<Record<string, unknown>> {
  const { history, uptime_seconds: _, ...figures } = toWire(stats);
  return {
    ...figures,
    key_count: stats.totalKeys,
    operations_per_second: operationsPerSecond(stats, now),
    history,
  };
}

/** A stretch of time in which something may have been counted. */
export interface Stretch {
  readonly operations: number;
  /** Undefined where nothing was asked for. */
  readonly hitRate: number | undefined;
}

/** The time of the figures in at most `most` equal stretches. */
export function stretches({ since, history }: FleetStats, now: number, most: number): readonly Stretch[] {
  const first = Math.floor(Date.parse(since) / MINUTE_MS);
  const minutes = Math.max(1, Math.floor(now / MINUTE_MS) - first + 1);
  const size = Math.ceil(minutes / most);
  const parts: FleetMinute[][] = Array.from({ length: Math.ceil(minutes / size) }, () => []);
  for (const minute of history) {
    parts[Math.floor((Math.floor(Date.parse(minute.at) / MINUTE_MS) - first) / size)]?.push(minute);
  }
  return parts.map((part) => {
    const hits = sum(part, "totalHits");
    const asked = hits + sum(part, "totalMisses");
    return { operations: sum(part, "totalOperations"), hitRate: asked === 0 ? undefined : hits / asked };
  });
}

const COUNTS = ["totalOperations", "totalHits", "totalMisses", "totalErrors"] as const;
type CountName = (typeof COUNTS)[number];
export type Counts = Readonly<Record<CountName, number>>;

const sum = (minutes: readonly FleetMinute[], name: CountName): number =>
  minutes.reduce((total, minute) => total + minute[name], 0);

/**
 * What was counted between two looks. Minute by minute: the sums cannot be compared, since old minutes drop out of them.
 */
export function countedBetween(before: FleetStats, after: FleetStats): Counts {
  const known = new Map(before.history.map((minute) => [minute.at, minute]));
  const oldest = before.history[0]?.at ?? "";
  const lately = after.history.filter(({ at }) => at >= oldest);
  const counts = COUNTS.map((name) => {
    const grown = lately.map((minute) => minute[name] - (known.get(minute.at)?.[name] ?? 0));
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
