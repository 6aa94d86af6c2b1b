// How many slots one answer about a cluster has to tell of, so that nobody else needs to be asked.
import type { Clock } from "../../../core/clock.ts";
import { SLOTS } from "./slots.ts";

/** How long fewer are put up with although somebody who could not be asked may know of more. */
const CONTENT_MS = 15_000;
/** How often everybody is asked at most for a slot that is nobody's, so that calls for such slots are no storm. */
const SEARCH_EVERY_MS = 1_000;

export class PartialTopology {
  readonly #clock: Clock;
  /** How many the cluster has owners for, so far as anybody has told. */
  #known = SLOTS;
  #makeshift = SLOTS;
  #contentUntil = Number.NEGATIVE_INFINITY;
  /** What the present lookup, or the last, goes by. */
  #wanted = SLOTS;
  #isSearched = false;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** For a lookup that begins now. */
  wanted(): number {
    const now = this.#clock.now();
    const isContent = !this.#isSearchDue(now) && now < this.#contentUntil;
    this.#wanted = isContent ? this.#makeshift : this.#known;
    return this.#wanted;
  }

  /** That lookup has ended. Fewer than wanted stay few only if all agree. */
  found(slots: number, hasHeardAll: boolean): void {
    this.#makeshift = slots;
    if (hasHeardAll || slots > this.#known) {
      this.#known = slots;
      this.#contentUntil = Number.NEGATIVE_INFINITY;
    } else if (slots < this.#wanted) this.#contentUntil = this.#clock.now() + CONTENT_MS;
  }

  /** Somebody needs a slot that is nobody's: whoever could not be asked may be there by now. */
  search(): void {
    this.#isSearched = true;
  }

  #isSearchDue(now: number): boolean {
    if (!this.#isSearched || now - this.#searchedAt < SEARCH_EVERY_MS) return false;
    this.#isSearched = false;
    this.#searchedAt = now;
    return true;
  }
}
