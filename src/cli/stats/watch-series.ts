// What watching has seen so far: each look at the figures, and what changed between them.
import type { FleetStats } from "../../core/stats.ts";
import { type Counts, countedBetween } from "./fleet-figures.ts";

/** Processes add to the store about every ten seconds: over less than that a rate would only jump. */
const RATE_MS = 15_000;
const MOST_LOOKS = 240;

interface Look {
  /** By the local clock. */
  readonly at: number;
  readonly stats: FleetStats;
  /** Counted since the look before. */
  readonly counted: Counts | undefined;
}

/** The state of a figure at a look. */
export interface Point {
  readonly operationsPerSecond: number | undefined;
  readonly hitRate: number | undefined;
  readonly keys: number;
  readonly bytes: number;
}

export class WatchSeries {
  #looks: Look[] = [];
  #points: Point[] = [];

  add(stats: FleetStats, at: number): void {
    const before = this.#looks.at(-1);
    const counted = before === undefined ? undefined : countedBetween(before.stats, stats);
    this.#looks = [...this.#looks, { at, stats, counted }].slice(-MOST_LOOKS);
    const { operations, hits, misses, seconds } = this.#lately(at);
    const asked = hits + misses;
    const point: Point = {
      operationsPerSecond: seconds === 0 ? undefined : operations / seconds,
      hitRate: asked === 0 ? undefined : hits / asked,
      keys: stats.totalKeys,
      bytes: stats.totalMemoryBytes,
    };
    this.#points = [...this.#points, point].slice(-MOST_LOOKS);
  }

  /** Deltas and curves begin anew with the latest look. */
  reset(): void {
    this.#looks = this.#looks.slice(-1);
    this.#points = this.#points.slice(-1);
  }

  get points(): readonly Point[] {
    return this.#points;
  }

  get latest(): FleetStats | undefined {
    return this.#looks.at(-1)?.stats;
  }

  /** Since the first look that is kept. */
  get since(): {
    readonly operations: number;
    readonly errors: number;
    readonly keys: number;
    readonly bytes: number;
  } {
    const [first] = this.#looks;
    const last = this.#looks.at(-1);
    const counts = this.#looks.slice(1).map(({ counted }) => counted);
    return {
      operations: counts.reduce((sum, each) => sum + (each?.totalOperations ?? 0), 0),
      errors: counts.reduce((sum, each) => sum + (each?.totalErrors ?? 0), 0),
      keys: (last?.stats.totalKeys ?? 0) - (first?.stats.totalKeys ?? 0),
      bytes: (last?.stats.totalMemoryBytes ?? 0) - (first?.stats.totalMemoryBytes ?? 0),
    };
  }

  #lately(now: number): { operations: number; hits: number; misses: number; seconds: number } {
    const sums = { operations: 0, hits: 0, misses: 0, seconds: 0 };
    for (const [at, look] of this.#looks.entries()) {
      const before = this.#looks[at - 1];
      if (before === undefined || look.counted === undefined || now - before.at > RATE_MS) continue;
      sums.operations += look.counted.totalOperations;
      sums.hits += look.counted.totalHits;
      sums.misses += look.counted.totalMisses;
      sums.seconds += (look.at - before.at) / 1_000;
    }
    return sums;
  }
}
