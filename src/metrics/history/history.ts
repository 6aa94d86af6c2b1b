// Per-minute statistics of all processes: adds what one cache counted, and reads the totals.
import type { ReportedAlert } from "../../core/alert-state.ts";
import type { Clock } from "../../core/clock.ts";
import { type CounterRow, type Counters, sumOf } from "../../core/counters.ts";
import { LazyModule } from "../../core/lazy-module.ts";
import type { OwnRecords } from "../../core/own-records.ts";
import type { CacheStats, FleetActivity, FleetMinute, FleetStats } from "../../core/stats.ts";
import type { ChangeMarks } from "../recording/change-marks.ts";
import type { FunctionCounts } from "../recording/function-counts.ts";
import type { Recorder, Reporter } from "../recording/recorder.ts";
import type { Activity } from "./activity.ts";
import { minuteOf, rowOf, rowSince } from "./minute.ts";
import { type ProcessReport, type ReportingCache, reportIn } from "./process-report.ts";
import { type CountingCache, MINUTE_MS, type ProcessShare, shareIn } from "./process-share.ts";

const fleetCode = new LazyModule(() => import("./fleet-activity.ts"));

/** Rows read at once. */
const READ_BATCH = 500;

export interface HistoryOptions {
  readonly recorder: Recorder;
  readonly functions: FunctionCounts;
  readonly marks: ChangeMarks;
  readonly counters: Counters;
  readonly records: OwnRecords;
  /** The state of the store's circuit breaker. */
  readonly breaker: () => string;
  readonly alerts: () => readonly ReportedAlert[];
  readonly clock: Clock;
  readonly retentionMs: number;
}

export class History implements Reporter, CountingCache, ReportingCache {
  readonly retentionMs: number;
  readonly breaker: () => string;
  readonly alerts: () => readonly ReportedAlert[];
  readonly #recorder: Recorder;
  readonly #functions: FunctionCounts;
  readonly #marks: ChangeMarks;
  readonly #records: OwnRecords;
  readonly #share: ProcessShare;
  readonly #report: ProcessReport;
  /** By name: the counts at the last `takeActivity`. */
  readonly #previousRows = new Map<string, readonly number[]>();
  /** The counts at the last `take`. */
  #previous: CounterRow;

  constructor(options: HistoryOptions) {
    const { recorder, counters, records, clock } = options;
    this.retentionMs = options.retentionMs;
    this.breaker = options.breaker;
    this.alerts = options.alerts;
    this.#recorder = recorder;
    this.#functions = options.functions;
    this.#marks = options.marks;
    this.#records = records;
    this.#report = reportIn(records, clock);
    this.#share = shareIn(counters, clock);
    this.#previous = rowOf(recorder);
  }

  /** Starts reporting; returns a function that stops it. */
  attach(): () => void {
    const leaving = [this.#recorder.addReporter(this), this.#share.join(this), this.#report.join(this)];
    this.#marks.onState = (what, state) => this.#report.changed(what, state);
    return () => {
      this.#marks.onState = undefined;
      for (const leave of leaving) leave();
    };
  }

  /** Whether counts are waiting to be written. */
  get hasUnwritten(): boolean {
    return this.#share.hasUnwritten;
  }

  counted(): void {
    this.#share.counted();
    this.#report.begin();
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

  row(): CounterRow {
    return rowOf(this.#recorder);
  }

  takeActivity(): Activity | undefined {
    const functions = new Map<string, readonly number[]>();
    for (const [name, row, ttlMs] of this.#functions.rows()) {
      const since = rowSince(row, this.#previousRows.get(name) ?? []);
      if (since === undefined) continue;
      this.#previousRows.set(name, row);
      functions.set(name, [ttlMs, ...since]);
    }
    const invalidations = this.#marks.take();
    return functions.size === 0 && invalidations.size === 0 ? undefined : { functions, invalidations };
  }

  /** Writes what was counted since the last time. */
  add(): Promise<void> {
    return this.#share.add();
  }

  /** Whether there is anything to do before the cache closes. */
  get owes(): boolean {
    return this.hasUnwritten || this.#report.hasBegun;
  }

  /** Writes what is left, and says that this process no longer uses the cache. Never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled([this.hasUnwritten ? this.add() : undefined, this.#report.leave()]);
  }

  /** What all processes report about themselves, over the last `seconds`. Writes nothing. */
  activity(seconds: number): Promise<FleetActivity> {
    return fleetCode.call(({ fleetActivity }) => fleetActivity(this.#records, seconds, this.#report));
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
