// The points of the dashboard's curves, from the counts of minutes.
import type { FleetMinute } from "../core/stats.ts";

export const POINTS = 60;

/** At most sixty points, each the average of its minutes. */
export function downsampled(
  history: readonly FleetMinute[],
  now: number,
  seconds: number,
): readonly unknown[] {
  const width = Math.max(60_000, (seconds * 1_000) / POINTS);
  const first = Math.floor((now - seconds * 1_000) / width);
  const groups = new Map<number, FleetMinute[]>();
  for (const minute of history) {
    const at = Math.floor(Date.parse(minute.at) / width);
    const group = groups.get(at) ?? [];
    groups.set(at, group);
    group.push(minute);
  }
  const points: unknown[] = [];
  for (let at = first; at <= Math.floor(now / width); at++) {
    const group = groups.get(at) ?? [];
    const sum = (name: keyof FleetMinute): number =>
      group.reduce((total, each) => total + Number(each[name]), 0);
    const operations = sum("totalOperations");
    const weighted = (name: "p50" | "p95" | "p99"): number =>
      operations === 0
        ? 0
        : group.reduce((total, each) => total + each[name] * each.totalOperations, 0) / operations;
    // The current minute is not over yet.
    const lasted = Math.max(1, Math.min(width, now - at * width) / 1_000);
    points.push({
      at: at * width,
      seconds: lasted,
      hits: sum("totalHits"),
      misses: sum("totalMisses"),
      storeHits: sum("totalStoreHits"),
      stale: sum("totalStaleServed"),
      loads: sum("totalLoads"),
      errors: sum("totalErrors"),
      operations,
      p50: weighted("p50"),
      p95: weighted("p95"),
      p99: weighted("p99"),
    });
  }
  return points;
}
