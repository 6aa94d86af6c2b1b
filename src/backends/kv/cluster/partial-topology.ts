// Decides how many slots an answer to CLUSTER SLOTS must cover before no other server needs to be queried.
import type { Clock } from "../../../core/clock.ts";
import { SLOTS } from "./slots.ts";

/** How long a partial answer is accepted although an unreachable server may know more. */
const ACCEPT_PARTIAL_MS = 15_000;
/** At most this often all servers are queried for a slot without a master, however many calls need one. */
const SEARCH_EVERY_MS = 1_000;

export class PartialTopology {
  readonly #clock: Clock;
  /** The slots that have a master, according to the most complete answer. */
  #known = SLOTS;
  #accepted = SLOTS;
  #acceptPartialUntil = Number.NEGATIVE_INFINITY;
  /** The requirement of the current or last lookup. */
  #required = SLOTS;
  #isSearched = false;
  #searchedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The requirement for a lookup that begins now. */
  required(): number {
    const now = this.#clock.now();
    const acceptsPartial = !this.#isSearchDue(now) && now < this.#acceptPartialUntil;
    this.#required = acceptsPartial ? this.#accepted : this.#known;
    return this.#required;
  }

  /** The lookup has ended. A lower number becomes the norm only if every server answered. */
  found(slots: number, hasAllAnswers: boolean): void {
    this.#accepted = slots;
    if (hasAllAnswers || slots > this.#known) {
      this.#known = slots;
      this.#acceptPartialUntil = Number.NEGATIVE_INFINITY;
    } else if (slots < this.#required) this.#acceptPartialUntil = this.#clock.now() + ACCEPT_PARTIAL_MS;
  }

  /** A call needs a slot without a known master: a server that could not be reached before may know it now. */
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
