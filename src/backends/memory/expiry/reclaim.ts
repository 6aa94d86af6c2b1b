// Reclaims expired and dead entries and those of cleared pages, a few at a time.
import type { Clock } from "../../../core/clock.ts";
import { isBox } from "../layout/box.ts";
import type { KeyHash } from "../layout/key-hash.ts";
import type { KeyIndex } from "../layout/key-index.ts";
import type { Pages } from "../layout/pages.ts";
import type { Rows } from "../layout/rows.ts";
import type { Schedule } from "./schedule.ts";

/** Due entries and slots processed per insertion, so that a busy table stays clean without a timer. */
const TENDED_PER_INSERTION = 2;

interface Live {
  isLive(): boolean;
}

export interface ReclaimOptions<S extends Live> {
  readonly rows: Rows<S>;
  readonly index: KeyIndex;
  readonly hash: KeyHash;
  readonly pages: Pages;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly drop: (slot: number) => void;
}

export class Reclaim<S extends Live> {
  readonly #rows: Rows<S>;
  readonly #index: KeyIndex;
  readonly #hash: KeyHash;
  readonly #pages: Pages;
  readonly #schedule: Schedule;
  readonly #clock: Clock;
  readonly #drop: (slot: number) => void;
  #sweepAt = 0;

  constructor({ rows, index, hash, pages, schedule, clock, drop }: ReclaimOptions<S>) {
    this.#rows = rows;
    this.#index = index;
    this.#hash = hash;
    this.#pages = pages;
    this.#schedule = schedule;
    this.#clock = clock;
    this.#drop = drop;
  }

  /** Whether entries may have to be boxed or reclaimed in the background. */
  get isNeeded(): boolean {
    return this.#schedule.size > 0 || this.#pages.hasRetired || this.#rows.tagSets !== undefined;
  }

  /** Slots that a sweep for dead entries covers: 0 while no entry has tags. */
  get sweepLength(): number {
    return this.#rows.tagSets === undefined ? 0 : this.#rows.used;
  }

  /** Called by every insertion. */
  onInsertion(): void {
    const coarse = this.#clock.coarse();
    if (coarse >= this.#schedule.horizon || this.#pages.hasRetired) this.turn(TENDED_PER_INSERTION, coarse);
    if (this.#rows.tagSets !== undefined) this.sweep(TENDED_PER_INSERTION, coarse);
  }

  /** Processes due entries and those of cleared pages, at most this many. Returns whether all are done. */
  turn(most: number, now: number): boolean {
    const reclaimed = this.retired(most);
    return reclaimed + this.#schedule.turn(most - reclaimed, now) < most;
  }

  /** Reclaims at most this many entries of cleared pages; returns how many were examined. */
  retired(most: number): number {
    for (let examined = 0; examined < most; examined++) {
      const retired = this.#pages.nextRetired();
      if (retired === undefined) return examined;
      const { key, number } = retired;
      const slot = this.#index.find(key, number, this.#hash.of(key, number));
      if (slot >= 0) this.#drop(slot);
    }
    return most;
  }

  /** Examines this many slots, continuing after the last call. Returns how many entries were reclaimed. */
  sweep(slots: number, now: number): number {
    const rows = this.#rows;
    let reclaimed = 0;
    for (let left = Math.min(slots, rows.used); left > 0 && rows.used > 0; left--) {
      if (this.#sweepAt >= rows.used) this.#sweepAt = 0;
      const slot = this.#sweepAt++;
      if (!rows.isOccupied(slot) || !this.isSpent(slot, now)) continue;
      this.#drop(slot);
      reclaimed++;
    }
    return reclaimed;
  }

  /** Whether an entry is expired, dead or of a cleared page. */
  isSpent(slot: number, now: number): boolean {
    const rows = this.#rows;
    if (rows.tagSetOf(slot)?.isLive() === false) return true;
    const page = this.#pages.at(rows.ownerOf(slot));
    if (page === undefined) return true;
    if (rows.staleUntilOf(slot) > now) return false;
    const held = page.held(rows.keys[slot]!);
    // The row of a boxed entry may have an earlier expiry, never a later one.
    return (isBox(held) ? held.expires : rows.expiresOf(slot)) <= now;
  }
}
