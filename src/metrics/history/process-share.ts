// This process's counts for one namespace, shared by all its caches and added to the store's per-minute rows periodically.
import type { Clock, Timer } from "../../core/clock.ts";
import { type CounterRow, type Counters, sumOf } from "../../core/counters.ts";
import { activityRow, withOneMoreProcess } from "./minute.ts";

export const MINUTE_MS = 60_000;
/** Delay after the first count; a process writes at most once per such interval. */
const WRITE_AFTER_MS = 10_000;
/** Unwritten minutes kept; beyond that the oldest are dropped. */
const MAX_UNWRITTEN = 60;

/** A cache that counts; it calls `counted` when there is something to take. */
export interface CountingCache {
  readonly retentionMs: number;
  /** What it counted since the last call; undefined: nothing. */
  take(): CounterRow | undefined;
}

const nameOf = (minute: number): string => `minute:${minute}`;

export class ProcessShare {
  readonly #counters: Counters;
  readonly #clock: Clock;
  readonly #caches = new Set<CountingCache>();
  /** By minute: counts not written yet. */
  readonly #unwritten = new Map<number, CounterRow>();
  /** The last minute in which this process has counted itself. */
  #lastMinute: number | undefined;
  /** When the first count came that was not collected yet. */
  #activeSince: number | undefined;
  #retentionMs = 0;
  #timer: Timer | undefined;
  #lastTask: Promise<unknown> = Promise.resolve();

  constructor(counters: Counters, clock: Clock) {
    this.#counters = counters;
    this.#clock = clock;
  }

  /** Returns a function to leave; the counts up to then are still written by the remaining caches. */
  join(cache: CountingCache): () => void {
    this.#caches.add(cache);
    this.#retentionMs = Math.max(this.#retentionMs, cache.retentionMs);
    return () => {
      this.collect();
      this.#caches.delete(cache);
      if (this.#caches.size === 0) this.#cancelTimer();
    };
  }

  /** Whether counts are waiting for the timer. */
  get hasUnwritten(): boolean {
    return this.#timer !== undefined;
  }

  counted(): void {
    this.#activeSince ??= this.#clock.now();
    this.#timer ??= this.#clock.after(WRITE_AFTER_MS, () => {
      // Store failures are reported by the operations themselves.
      this.add().catch(() => {});
    });
  }

  /** Credits the counts so far to the current minute. Returns the store's time. */
  collect(): number {
    const now = this.#counters.now();
    const minute = Math.floor(now / MINUTE_MS);
    let isActive = false;
    for (const cache of this.#caches) {
      const row = cache.take();
      if (row === undefined) continue;
      this.#credit(minute, this.#lastMinute === minute ? row : withOneMoreProcess(row));
      this.#lastMinute = minute;
      isActive = true;
    }
    if (isActive) this.#creditActivity(minute);
    return now;
  }

  /** Writes what was counted since the last time; after a failure it is retried. */
  async add(): Promise<void> {
    this.#cancelTimer();
    this.collect();
    try {
      await this.#serialized(() => this.#write());
    } catch (error) {
      if (this.#caches.size > 0) this.counted();
      throw error;
    }
  }

  /** The rows of `count` minutes over all processes, including what this one has not written yet. */
  read(first: number, count: number): Promise<readonly (CounterRow | undefined)[]> {
    const minutes = Array.from({ length: count }, (_, at) => first + at);
    return this.#serialized(async () => {
      const rows = await this.#counters.read(minutes.map(nameOf));
      return minutes.map((minute, at) => sumOfBoth(rows[at], this.#unwritten.get(minute)));
    });
  }

  /** Serialized: a read between a write and its reply could count it twice or not at all. */
  #serialized<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#lastTask.then(work);
    this.#lastTask = done.catch(() => {});
    return done;
  }

  async #write(): Promise<void> {
    for (const [minute, row] of [...this.#unwritten]) {
      this.#unwritten.delete(minute);
      try {
        await this.#counters.add(nameOf(minute), row, this.#retentionMs);
      } catch (error) {
        // The store may have applied it nevertheless: counting twice is better than losing it.
        this.#credit(minute, row);
        throw error;
      }
    }
  }

  /** Rates are counts over this time: a report says nothing about the time between reports. */
  #creditActivity(minute: number): void {
    const now = this.#clock.now();
    if (this.#activeSince !== undefined) this.#credit(minute, activityRow(now - this.#activeSince));
    this.#activeSince = undefined;
  }

  #credit(minute: number, row: CounterRow): void {
    this.#unwritten.set(minute, sumOf(this.#unwritten.get(minute) ?? [], row));
    if (this.#unwritten.size > MAX_UNWRITTEN) this.#unwritten.delete(Math.min(...this.#unwritten.keys()));
  }

  #cancelTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

function sumOfBoth(one: CounterRow | undefined, other: CounterRow | undefined): CounterRow | undefined {
  return one === undefined || other === undefined ? (one ?? other) : sumOf(one, other);
}

const shares = new WeakMap<Counters, ProcessShare>();

/** One per namespace, since its caches in this process count as one process. */
export function shareIn(counters: Counters, clock: Clock): ProcessShare {
  let share = shares.get(counters);
  if (share === undefined) {
    share = new ProcessShare(counters, clock);
    shares.set(counters, share);
  }
  return share;
}
