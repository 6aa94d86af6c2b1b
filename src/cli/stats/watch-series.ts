// The readings `stats --watch` has taken so far, and the changes between them.
import type { FleetStats } from "../../core/stats.ts";
import { type Counts, countedBetween, fleetRate, operationsPerSecond } from "./fleet-figures.ts";

/** Processes report about every ten seconds: without a report for longer than this, nothing happens. */
const RATE_MS = 15_000;
const MAX_READINGS = 240;

interface Reading {
  /** By the local clock. */
  readonly at: number;
  readonly stats: FleetStats;
  /** Counted since the previous reading. */
  readonly counted: Counts | undefined;
}

/** One point of the curves. */
export interface Point {
  readonly operationsPerSecond: number;
  readonly hitRate: number | undefined;
  readonly keys: number;
  readonly bytes: number;
}

export class WatchSeries {
  #readings: Reading[] = [];
  #points: Point[] = [];

  /** `at`: by the local clock; `now`: the store's time. */
  add(stats: FleetStats, at: number, now: number): void {
    const before = this.#readings.at(-1);
    const counted = before === undefined ? undefined : countedBetween(before.stats, stats);
    this.#readings = [...this.#readings, { at, stats, counted }].slice(-MAX_READINGS);
    const { operations, hits, misses, activeSeconds } = this.#recent(at);
    const reads = hits + misses;
    // Until the first report arrives, the rate is that of the reports before.
    const isNew = at - (this.#readings[0]?.at ?? at) < RATE_MS;
    const point: Point = {
      operationsPerSecond:
        activeSeconds === 0 && isNew
          ? operationsPerSecond(stats, now)
          : fleetRate(operations, activeSeconds, stats.history.slice(-2)),
      hitRate: reads === 0 ? undefined : hits / reads,
      keys: stats.totalKeys,
      bytes: stats.totalMemoryBytes,
    };
    this.#points = [...this.#points, point].slice(-MAX_READINGS);
  }

  /** Restarts changes and curves at the latest reading. */
  reset(): void {
    this.#readings = this.#readings.slice(-1);
    this.#points = this.#points.slice(-1);
  }

  get points(): readonly Point[] {
    return this.#points;
  }

  get latest(): FleetStats | undefined {
    return this.#readings.at(-1)?.stats;
  }

  /** Changes since the oldest reading kept. */
  get changes(): {
    readonly operations: number;
    readonly errors: number;
    readonly keys: number;
    readonly bytes: number;
  } {
    const [first] = this.#readings;
    const last = this.#readings.at(-1);
    const counts = this.#readings.slice(1).map(({ counted }) => counted);
    return {
      operations: counts.reduce((sum, each) => sum + (each?.totalOperations ?? 0), 0),
      errors: counts.reduce((sum, each) => sum + (each?.totalErrors ?? 0), 0),
      keys: (last?.stats.totalKeys ?? 0) - (first?.stats.totalKeys ?? 0),
      bytes: (last?.stats.totalMemoryBytes ?? 0) - (first?.stats.totalMemoryBytes ?? 0),
    };
  }

  #recent(now: number): { operations: number; hits: number; misses: number; activeSeconds: number } {
    const sums = { operations: 0, hits: 0, misses: 0, activeSeconds: 0 };
    for (const { at, counted } of this.#readings) {
      if (counted === undefined || now - at > RATE_MS) continue;
      sums.operations += counted.totalOperations;
      sums.hits += counted.totalHits;
      sums.misses += counted.totalMisses;
      sums.activeSeconds += counted.activeSeconds;
    }
    return sums;
  }
}
