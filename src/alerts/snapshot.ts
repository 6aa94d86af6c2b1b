// Snapshots of a cache's metrics, with what has happened since the previous snapshot.
import type { Clock } from "../core/clock.ts";
import type { ComprehensiveMetrics } from "../core/stats.ts";

/** What alerts need from a cache; every XCache implements it. */
export interface MetricsSource {
  getComprehensiveMetrics(): ComprehensiveMetrics;
  /** Called by `start()`, so that rates cover the last minute. */
  startMetricsCollection?(): void;
}

export interface MetricsSnapshot {
  readonly record: ComprehensiveMetrics;
  readonly newOperations: number;
  /** Calls that may have been a hit or a miss. */
  readonly newLookups: number;
  /** Connection failures of the last five minutes, or since the start. */
  readonly recentFailures: number;
}

/**
 * While a circuit is open only its probes fail, by default one every 30 s. The window is long enough that the gap between
 * two probes does not look like a recovery.
 */
export const FAILURE_WINDOW_MS = 300_000;

/** Snapshots may be more frequent; marks are not, so that few are kept. */
const MARK_EVERY_MS = 5_000;

const LOOKUPS: readonly string[] = ["get", "getMany", "getOrSet"];

interface Mark {
  readonly at: number;
  readonly failures: number;
}

export class SnapshotReader {
  readonly #source: MetricsSource;
  readonly #clock: Clock;
  #operations = 0;
  #lookups = 0;
  #marks: Mark[] = [];

  constructor(source: MetricsSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Sets the baseline, so that earlier counts are not new in the first snapshot. */
  begin(): void {
    this.read();
  }

  read(): MetricsSnapshot {
    const record = this.#source.getComprehensiveMetrics();
    const lookups = LOOKUPS.reduce((sum, name) => sum + (record.byOperation[name]?.count ?? 0), 0);
    const snapshot = {
      record,
      newOperations: record.totalOperations - this.#operations,
      newLookups: lookups - this.#lookups,
      recentFailures: this.#recentFailures(record.connectionFailures),
    };
    this.#operations = record.totalOperations;
    this.#lookups = lookups;
    return snapshot;
  }

  #recentFailures(failures: number): number {
    const at = this.#clock.now();
    const last = this.#marks.at(-1);
    if (last === undefined || at - last.at >= MARK_EVERY_MS) this.#marks.push({ at, failures });
    // The oldest mark kept is the last one before the window, so that the window is always covered.
    while (this.#marks.length > 1 && this.#marks[1]!.at <= at - FAILURE_WINDOW_MS) this.#marks.shift();
    return failures - this.#marks[0]!.failures;
  }
}
