// What this process counted on a namespace: kept once for all caches there, and added to the rows of all processes now and then.
import type { Clock, Timer } from "../../core/clock.ts";
import { type CounterRow, type Counters, sumOf } from "../../core/counters.ts";
import { byOneMore } from "./minute.ts";

export const MINUTE_MS = 60_000;
/** After something was counted; so a process writes once in so long at most. */
const ADD_AFTER_MS = 10_000;
/** Minutes that could not be added yet; of more, the oldest are forgotten. */
const MOST_UNWRITTEN = 60;

/** A cache that counts. It says by `counted` that there is something to take. */
export interface Counting {
  readonly retentionMs: number;
  /** What it counted since the last time; undefined: nothing. */
  take(): CounterRow | undefined;
}

const nameOf = (minute: number): string => `minute:${minute}`;

export class ProcessShare {
  readonly #ledger: Counters;
  readonly #clock: Clock;
  readonly #counting = new Set<Counting>();
  /** By minute: what is still to be added. */
  readonly #unwritten = new Map<number, CounterRow>();
  /** The last minute that this process has counted itself in. */
  #lastMinute: number | undefined;
  #retentionMs = 0;
  #timer: Timer | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(ledger: Counters, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** Returns how to leave; what was counted until then is still added, by those who stay. */
  join(cache: Counting): () => void {
    this.#counting.add(cache);
    this.#retentionMs = Math.max(this.#retentionMs, cache.retentionMs);
    return () => {
      this.collect();
      this.#counting.delete(cache);
      if (this.#counting.size === 0) this.#rest();
    };
  }

  /** Whether there is something to add that the timer was to. */
  get isLate(): boolean {
    return this.#timer !== undefined;
  }

  counted(): void {
    this.#timer ??= this.#clock.after(ADD_AFTER_MS, () => {
      // The store's failures show where it is used.
      this.add().catch(() => {});
    });
  }

  /** Notes what was counted until now as of the present minute. Returns the time. */
  collect(): number {
    const now = this.#ledger.now();
    const minute = Math.floor(now / MINUTE_MS);
    for (const cache of this.#counting) {
      const row = cache.take();
      if (row === undefined) continue;
      this.#note(minute, this.#lastMinute === minute ? row : byOneMore(row));
      this.#lastMinute = minute;
    }
    return now;
  }

  /** Adds what was counted since the last time. What the store does not take is tried again. */
  async add(): Promise<void> {
    this.#rest();
    this.collect();
    try {
      await this.#inTurn(() => this.#write());
    } catch (error) {
      if (this.#counting.size > 0) this.counted();
      throw error;
    }
  }

  /** The rows of `count` minutes by all processes, with what this one has noted and not added yet. */
  read(first: number, count: number): Promise<readonly (CounterRow | undefined)[]> {
    const minutes = Array.from({ length: count }, (_, at) => first + at);
    return this.#inTurn(async () => {
      const rows = await this.#ledger.read(minutes.map(nameOf));
      return minutes.map((minute, at) => together(rows[at], this.#unwritten.get(minute)));
    });
  }

  /** Reading between an addition and its reply could count it twice or not at all. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }

  async #write(): Promise<void> {
    for (const [minute, row] of [...this.#unwritten]) {
      this.#unwritten.delete(minute);
      try {
        await this.#ledger.add(nameOf(minute), row, this.#retentionMs);
      } catch (error) {
        // The store may have taken it all the same: twice is better than never.
        this.#note(minute, row);
        throw error;
      }
    }
  }

  #note(minute: number, row: CounterRow): void {
    this.#unwritten.set(minute, sumOf(this.#unwritten.get(minute) ?? [], row));
    if (this.#unwritten.size > MOST_UNWRITTEN) this.#unwritten.delete(Math.min(...this.#unwritten.keys()));
  }

  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

function together(one: CounterRow | undefined, other: CounterRow | undefined): CounterRow | undefined {
  return one === undefined || other === undefined ? (one ?? other) : sumOf(one, other);
}

const shares = new WeakMap<Counters, ProcessShare>();

/** Caches on one namespace are one process. */
export function shareIn(ledger: Counters, clock: Clock): ProcessShare {
  let share = shares.get(ledger);
  if (share === undefined) {
    share = new ProcessShare(ledger, clock);
    shares.set(ledger, share);
  }
  return share;
}
