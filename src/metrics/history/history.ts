// Per-minute statistics of all processes: adds what one cache counted, and reads the totals.
import type { Clock } from "../../core/clock.ts";
import { type CounterRow, type Counters, sumOf } from "../../core/counters.ts";
import type { CacheStats, FleetMinute, FleetStats } from "../../core/stats.ts";
import type { Recorder, Reporter } from "../recording/recorder.ts";
import { minuteOf, rowOf, rowSince } from "./minute.ts";
import { type CountingCache, MINUTE_MS, type ProcessShare, shareIn } from "./process-share.ts";

/** Rows read at once. */
const READ_BATCH = 500;

export interface HistoryOptions {
  readonly recorder: Recorder;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly retentionMs: number;
}

export class History implements Reporter, CountingCache {
  readonly retentionMs: number;
  readonly #recorder: Recorder;
  readonly #share: ProcessShare;
  /** The counts at the last `take`. */
  #previous: CounterRow;

  constructor({ recorder, counters, clock, retentionMs }: HistoryOptions) {
    this.retentionMs = retentionMs;
    this.#recorder = recorder;
    this.#share = shareIn(counters, clock);
    this.#previous = rowOf(recorder);
  }

  /** Starts reporting; returns a function that stops it. */
  attach(): () => void {
    const leaving = [this.#recorder.addReporter(this), this.#share.join(this)];
    return () => {
      for (const leave of leaving) leave();
    };
  }

  /** Whether counts are waiting to be written. */
  get hasUnwritten(): boolean {
    return this.#share.hasUnwritten;
  }

  counted(): void {
    this.#share.counted();
  }

  timed(): void {}

  marked(): void {}

  take(): CounterRow | undefined {
    const now = rowOf(this.#recorder);
    const row = rowSince(now, this.#previous);
    this.#previous = now;
    this.#recorder.reported();
    return row;
  }

  /** Writes what was counted since the last time. */
  add(): Promise<void> {
    return this.#share.add();
  }

  /** Statistics of all processes over the last `seconds`; `own` provides keys and bytes. Writes nothing. */
  async fleet(own: CacheStats, seconds: number): Promise<FleetStats> {
    const now = this.#share.collect();
    const first = Math.floor((now - Math.min(seconds * 1_000, this.retentionMs)) / MINUTE_MS);
    const last = Math.floor(now / MINUTE_MS);
    const minutes: FleetMinute[] = [];
    let sum: CounterRow = [];
    for (let from = first; from <= last; from += READ_BATCH) {
      const rows = await this.#share.read(from, Math.min(READ_BATCH, last - from + 1));
      for (const [at, row] of rows.entries()) {
        if (row === undefined) continue;
        minutes.push(minuteOf(row, (from + at) * MINUTE_MS));
        sum = sumOf(sum, row);
      }
    }
    const { at, ...total } = minuteOf(sum, first * MINUTE_MS);
    const processes = minutes.reduce((most, minute) => Math.max(most, minute.processes), 0);
    return { ...own, ...total, processes, since: at, history: minutes };
  }
}
