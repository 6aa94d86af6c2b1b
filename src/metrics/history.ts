// The figures of all processes over time: each adds what it counted to the minute's row in the store, now and then.
import type { Clock, Timer } from "../core/clock.ts";
import { type Ledger, type Row, sumOf } from "../core/ledger.ts";
import type { CacheStats, FleetMinute, FleetStats } from "../core/records.ts";
import { byOneMore, minuteOf, rowOf, rowSince } from "./minute.ts";
import type { Recorder, Reporter } from "./recorder.ts";

const MINUTE_MS = 60_000;
/** After something was counted; so a process writes once in so long at most. */
const ADD_AFTER_MS = 10_000;
/** Minutes that could not be added yet; of more, the oldest are forgotten. */
const MOST_PENDING = 60;
/** Rows asked for at once. */
const READ_TOGETHER = 500;

export interface HistoryOptions {
  readonly recorder: Recorder;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly retentionMs: number;
}

/** The last minute that this process has added itself to; caches on one namespace are one process. */
const lastMinutes = new WeakMap<Ledger, number>();

const nameOf = (minute: number): string => `minute:${minute}`;

export class History implements Reporter {
  readonly #options: HistoryOptions;
  /** What was counted when it was last looked at. */
  #seen: Row;
  /** By minute: what is still to be added. */
  readonly #pending = new Map<number, Row>();
  #timer: Timer | undefined;
  #adding: Promise<void> | undefined;
  #isAttached = false;

  constructor(options: HistoryOptions) {
    this.#options = options;
    this.#seen = rowOf(options.recorder);
  }

  /** Begins to add, and returns how to end that. */
  attach(): () => void {
    const leave = this.#options.recorder.addReporter(this);
    this.#isAttached = true;
    return () => {
      leave();
      this.#isAttached = false;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /** Whether there is something to add that the timer was to. */
  get isLate(): boolean {
    return this.#timer !== undefined;
  }

  counted(): void {
    this.#timer ??= this.#options.clock.after(ADD_AFTER_MS, () => {
      this.#timer = undefined;
      // The store's failures show where it is used; what could not be added is tried again.
      this.add().catch(() => {
        if (this.#isAttached) this.counted();
      });
    });
  }

  timed(): void {}

  marked(): void {}

  /** Adds what was counted since the last time. */
  add(): Promise<void> {
    this.#adding ??= this.#add().finally(() => {
      this.#adding = undefined;
    });
    return this.#adding;
  }

  /** The figures of everybody over the last `seconds`; `own` tells the keys and bytes. */
  async fleet(own: CacheStats, seconds: number): Promise<FleetStats> {
    // Whoever only looks leaves no trace.
    if (this.#isAttached) await this.add();
    const { ledger, retentionMs } = this.#options;
    const now = ledger.now();
    const first = Math.floor((now - Math.min(seconds * 1_000, retentionMs)) / MINUTE_MS);
    const last = Math.floor(now / MINUTE_MS);
    const minutes: FleetMinute[] = [];
    let sum: Row = [];
    for (let from = first; from <= last; from += READ_TOGETHER) {
      const count = Math.min(READ_TOGETHER, last - from + 1);
      const rows = await ledger.read(Array.from({ length: count }, (_, at) => nameOf(from + at)));
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

  async #add(): Promise<void> {
    const { ledger, retentionMs, recorder } = this.#options;
    this.#collect(Math.floor(ledger.now() / MINUTE_MS));
    recorder.reported();
    for (const [minute, row] of this.#pending) {
      // Counted again where the store fails: twice is better than never.
      await ledger.add(nameOf(minute), row, retentionMs);
      this.#pending.delete(minute);
    }
  }

  #collect(minute: number): void {
    const { recorder, ledger } = this.#options;
    const now = rowOf(recorder);
    const row = rowSince(now, this.#seen);
    this.#seen = now;
    if (row === undefined) return;
    const counted = lastMinutes.get(ledger) === minute ? row : byOneMore(row);
    lastMinutes.set(ledger, minute);
    this.#pending.set(minute, sumOf(this.#pending.get(minute) ?? [], counted));
    for (const oldest of this.#pending.keys()) {
      if (this.#pending.size <= MOST_PENDING) break;
      this.#pending.delete(oldest);
    }
  }
}
