// One look at the cache's figures, together with what has happened since the look before.
import type { Clock } from "../core/clock.ts";
import type { ComprehensiveMetrics } from "../core/stats.ts";

/** What alerts need of a cache; every XCache has it. */
export interface MetricsSource {
  getComprehensiveMetrics(): ComprehensiveMetrics;
  /** Called by `start()`, so that rates are those of the last minute. */
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
 * While a circuit is open only its probes fail, by default one in 30 s. A window this long does not take the time between
 * two of them for a recovery.
 */
export const FAILURE_WINDOW_MS = 300_000;

/** Looks may come much faster than this; marks do not, so that few are kept. */
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

  /** What was counted before the first look is not new at it. */
  begin(): void {
    this.look();
  }

  look(): MetricsSnapshot {
    const record = this.#source.getComprehensiveMetrics();
    const lookups = LOOKUPS.reduce((sum, name) => sum + (record.byOperation[name]?.count ?? 0), 0);
    const look = {
      record,
      newOperations: record.totalOperations - this.#operations,
      newLookups: lookups - this.#lookups,
      recentFailures: this.#recentFailures(record.connectionFailures),
    };
    this.#operations = record.totalOperations;
    this.#lookups = lookups;
    return look;
  }

  #recentFailures(failures: number): number {
    const at = this.#clock.now();
    const last = this.#marks.at(-1);
    if (last === undefined || at - last.at >= MARK_EVERY_MS) this.#marks.push({ at, failures });
    // The oldest one kept is the last from before the window, so that the window is always covered.
    while (this.#marks.length > 1 && this.#marks[1]!.at <= at - FAILURE_WINDOW_MS) this.#marks.shift();
    return failures - this.#marks[0]!.failures;
  }
}
