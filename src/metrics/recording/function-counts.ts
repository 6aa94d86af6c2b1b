// Counts by wrapped function of one cache object, for a bounded number of names.
import type { Clock } from "../../core/clock.ts";
import type { FunctionRecord } from "../../core/function-record.ts";
import { Histogram } from "./histogram.ts";

/** Names counted separately; the rest share one record. */
export const MOST_FUNCTIONS = 200;
export const OTHER_FUNCTIONS = "other";
/** A longer name is cut. */
const LONGEST_NAME = 120;

class CountedFunction implements FunctionRecord {
  calls = 0;
  missed = 0;
  coalesced = 0;
  stale = 0;
  errors = 0;
  ttlMs = 0;
  readonly loadTime = new Histogram();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): number {
    return this.#clock.now();
  }

  loaded(startedAt: number, hasFailed: boolean): void {
    this.loadTime.add((this.#clock.now() - startedAt) / 1_000);
    if (hasFailed) this.errors++;
  }

  /** See `FunctionRow`. */
  row(): readonly number[] {
    const { calls, missed, coalesced, stale, errors, loadTime } = this;
    return [calls, missed, coalesced, stale, errors, loadTime.sum, ...loadTime.counts];
  }
}

export class FunctionCounts {
  readonly #clock: Clock;
  readonly #records = new Map<string, CountedFunction>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  record(name: string): FunctionRecord {
    const short = name.slice(0, LONGEST_NAME);
    const own = this.#records.has(short) || this.#records.size < MOST_FUNCTIONS ? short : OTHER_FUNCTIONS;
    let record = this.#records.get(own);
    if (record === undefined) {
      record = new CountedFunction(this.#clock);
      this.#records.set(own, record);
    }
    return record;
  }

  /** By name: the counts so far, and the latest ttl in milliseconds. */
  *rows(): Iterable<readonly [name: string, row: readonly number[], ttlMs: number]> {
    for (const [name, record] of this.#records) yield [name, record.row(), record.ttlMs];
  }
}
