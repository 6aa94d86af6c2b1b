// The readings `stats --watch` has taken so far, and the changes between them.
import type { FleetStats } from "../../core/stats.ts";
import { type Counts, countedBetween } from "./fleet-figures.ts";

/** Processes report about every ten seconds: over a shorter window a rate would only jump. */
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
  readonly operationsPerSecond: number | undefined;
  readonly hitRate: number | undefined;
  readonly keys: number;
  readonly bytes: number;
}

export class WatchSeries {
  #readings: Reading[] = [];
  #points: Point[] = [];

  add(stats: FleetStats, at: number): void {
    const before = this.#readings.at(-1);
    const counted = before === undefined ? undefined : countedBetween(before.stats, stats);
    this.#readings = [...this.#readings, { at, stats, counted }].slice(-MAX_READINGS);
    const { operations, hits, misses, seconds } = this.#recent(at);
    const reads = hits + misses;
    const point: Point = {
      operationsPerSecond: seconds === 0 ? undefined : operations / seconds,
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

  #recent(now: number): { operations: number; hits: number; misses: number; seconds: number } {
    const sums = { operations: 0, hits: 0, misses: 0, seconds: 0 };
    for (const [at, reading] of this.#readings.entries()) {
      const before = this.#readings[at - 1];
      if (before === undefined || reading.counted === undefined || now - before.at > RATE_MS) continue;
      sums.operations += reading.counted.totalOperations;
      sums.hits += reading.counted.totalHits;
      sums.misses += reading.counted.totalMisses;
      sums.seconds += (reading.at - before.at) / 1_000;
    }
    return sums;
  }
}
