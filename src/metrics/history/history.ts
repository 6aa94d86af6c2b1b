// The figures of all processes over time: what one cache adds to them, and what they say together.
import type { Clock } from "../../core/clock.ts";
import { type CounterRow, type Counters, sumOf } from "../../core/counters.ts";
import type { CacheStats, FleetMinute, FleetStats } from "../../core/stats.ts";
import type { Recorder, Reporter } from "../recording/recorder.ts";
import { minuteOf, rowOf, rowSince } from "./minute.ts";
import { type Counting, MINUTE_MS, type ProcessShare, shareIn } from "./process-share.ts";

/** Rows asked for at once. */
const READ_TOGETHER = 500;

export interface HistoryOptions {
  readonly recorder: Recorder;
  readonly ledger: Counters;
  readonly clock: Clock;
  readonly retentionMs: number;
}

export class History implements Reporter, Counting {
  readonly retentionMs: number;
  readonly #recorder: Recorder;
  readonly #share: ProcessShare;
  /** What was counted when it was last looked at. */
  #seen: CounterRow;

  constructor({ recorder, ledger, clock, retentionMs }: HistoryOptions) {
    this.retentionMs = retentionMs;
    this.#recorder = recorder;
    this.#share = shareIn(ledger, clock);
    this.#seen = rowOf(recorder);
  }

  /** Begins to add, and returns how to end that. */
  attach(): () => void {
    const leaving = [this.#recorder.addReporter(this), this.#share.join(this)];
    return () => {
      for (const leave of leaving) leave();
    };
  }

  /** Whether there is something to add that is waiting for its time. */
  get isLate(): boolean {
    return this.#share.isLate;
  }

  counted(): void {
    this.#share.counted();
  }

  timed(): void {}

  marked(): void {}

  take(): CounterRow | undefined {
    const now = rowOf(this.#recorder);
    const row = rowSince(now, this.#seen);
    this.#seen = now;
    this.#recorder.reported();
    return row;
  }

  /** Adds what was counted since the last time. */
  add(): Promise<void> {
    return this.#share.add();
  }

  /** The figures of everybody over the last `seconds`; `own` tells the keys and bytes. Writes nothing. */
  async fleet(own: CacheStats, seconds: number): Promise<FleetStats> {
    const now = this.#share.collect();
    const first = Math.floor((now - Math.min(seconds * 1_000, this.retentionMs)) / MINUTE_MS);
    const last = Math.floor(now / MINUTE_MS);
    const minutes: FleetMinute[] = [];
    let sum: CounterRow = [];
    for (let from = first; from <= last; from += READ_TOGETHER) {
      const rows = await this.#share.read(from, Math.min(READ_TOGETHER, last - from + 1));
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
