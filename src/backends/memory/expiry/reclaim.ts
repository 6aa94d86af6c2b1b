// Reclaiming what is of no use any more, a few entries at a time: expired, dead, or left of a cleared page.
import type { Clock } from "../../../core/clock.ts";
import { isBox } from "../layout/box.ts";
import type { KeyHash } from "../layout/key-hash.ts";
import type { KeyIndex } from "../layout/key-index.ts";
import type { Pages } from "../layout/pages.ts";
import type { Rows } from "../layout/rows.ts";
import type { Schedule } from "./schedule.ts";

/** How many due entries and how many slots every insertion sees to, so that a busy table needs no timer to stay clean. */
const TENDED_PER_INSERTION = 2;

interface Mortal {
  isLive(): boolean;
}

export interface ReclaimOptions<S extends Mortal> {
  readonly rows: Rows<S>;
  readonly index: KeyIndex;
  readonly hash: KeyHash;
  readonly pages: Pages;
  readonly schedule: Schedule;
  readonly clock: Clock;
  readonly drop: (slot: number) => void;
}

export class Reclaim<S extends Mortal> {
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

  /** Whether anything may have to be put into a box or reclaimed without being asked for. */
  get isNeeded(): boolean {
    return this.#schedule.size > 0 || this.#pages.hasRetired || this.#rows.tagSets !== undefined;
  }

  /** How many slots have to be looked at to find the dead: none while nothing has a seal. */
  get sweepLength(): number {
    return this.#rows.tagSets === undefined ? 0 : this.#rows.used;
  }

  /** What every insertion does. */
  alongside(): void {
    const coarse = this.#clock.coarse();
    if (coarse >= this.#schedule.horizon || this.#pages.hasRetired) this.turn(TENDED_PER_INSERTION, coarse);
    if (this.#rows.tagSets !== undefined) this.sweep(TENDED_PER_INSERTION, coarse);
  }

  /** Sees to what is due and to what is left of cleared pages, at most this many entries. Returns whether all is done. */
  turn(most: number, now: number): boolean {
    const reclaimed = this.retired(most);
    return reclaimed + this.#schedule.turn(most - reclaimed, now) < most;
  }

  /** At most this many entries of cleared pages; returns how many were looked at. */
  retired(most: number): number {
    for (let looked = 0; looked < most; looked++) {
      const retired = this.#pages.nextRetired();
      if (retired === undefined) return looked;
      const { key, number } = retired;
      const slot = this.#index.find(key, number, this.#hash.of(key, number));
      if (slot >= 0) this.#drop(slot);
    }
    return most;
  }

  /** Looks at this many slots, going on where the last call ended. Returns how many were of no use. */
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

  /** Whether an entry is of no use any more. */
  isSpent(slot: number, now: number): boolean {
    const rows = this.#rows;
    if (rows.tagSetOf(slot)?.isLive() === false) return true;
    const page = this.#pages.at(rows.ownerOf(slot));
    if (page === undefined) return true;
    if (rows.staleUntilOf(slot) > now) return false;
    const held = page.held(rows.keys[slot]!);
    // The row of an entry in a box may have an earlier expiry, never a later one.
    return (isBox(held) ? held.expires : rows.expiresOf(slot)) <= now;
  }
}
