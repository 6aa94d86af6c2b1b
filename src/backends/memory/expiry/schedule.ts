// When an entry is put into a box, because its expiry is near, and when it is reclaimed.
//
// The wheel is turned ahead of time, by a timer. Whatever is not in a box is fresh until the horizon: before that, nothing
// comes up. A hit past the horizon, because the timer is late, looks at the entry's own expiry; so a late timer costs
// time and never correctness.
import { type Clock, COARSE_LAG_MS } from "../../../core/clock.ts";
import { Box, isBox } from "../layout/box.ts";
import type { Pages } from "../layout/pages.ts";
import type { Rows } from "../layout/rows.ts";
import { TICK_MS, tickOf, Wheel } from "./wheel.ts";

/** So near to its expiry the coarse time decides nothing: it may lag, and 5 s more while the event loop is blocked. */
export const NEAR_MS = 5_000 + COARSE_LAG_MS;
/** The wheel is turned so many ticks ahead, so that the horizon is at least one away afterwards. */
const AHEAD = 2;

export interface ScheduleHost {
  readonly clock: Clock;
  readonly rows: Rows<unknown>;
  readonly pages: Pages;
  /** The entry is of no use to anybody. */
  reclaim(slot: number): void;
  /** The first entry is waiting. */
  started(): void;
}

export class Schedule {
  /** What is not in a box is fresh until then. */
  horizon = Number.POSITIVE_INFINITY;
  readonly #host: ScheduleHost;
  readonly #wheel: Wheel;

  constructor(host: ScheduleHost) {
    this.#host = host;
    this.#wheel = new Wheel(host.rows);
  }

  /** How many entries are waiting. */
  get size(): number {
    return this.#wheel.size;
  }

  /** Whether an entry that expires then needs no box yet. */
  canBePlain(expires: number): boolean {
    if (this.#wheel.size === 0 && expires !== Number.POSITIVE_INFINITY) this.#start();
    return this.#isFar(expires);
  }

  /** Lets an entry come up in time, or earlier. */
  set(slot: number, expires: number, staleUntil: number, plain: boolean): void {
    const wheel = this.#wheel;
    const due = plain ? expires - NEAR_MS : staleUntil + AHEAD * TICK_MS;
    if (wheel.comesBy(slot, due)) return;
    wheel.unlink(slot);
    if (due === Number.POSITIVE_INFINITY) return;
    if (wheel.size === 0) this.#start();
    wheel.link(slot, due);
  }

  forget(slot: number): void {
    this.#wheel.unlink(slot);
  }

  /** Sees to what is due, at most this many entries. Returns how many there were; fewer than that when all is done. */
  turn(most: number, now: number): number {
    const end = tickOf(now) + AHEAD;
    let seen = 0;
    for (; seen < most; seen++) {
      const slot = this.#wheel.take(end);
      if (slot < 0) break;
      this.#comeUp(slot, now);
    }
    this.updateHorizon();
    return seen;
  }

  updateHorizon(): void {
    this.horizon = this.#wheel.size === 0 ? Number.POSITIVE_INFINITY : this.#wheel.firstOpen * TICK_MS;
  }

  #start(): void {
    const { clock } = this.#host;
    this.#wheel.start(tickOf(clock.coarse()) + AHEAD);
    this.horizon = this.#wheel.firstOpen * TICK_MS;
    this.#host.started();
  }

  /** An empty wheel begins at the present, so that counts as well as where it stands. */
  #isFar(expires: number): boolean {
    const present = tickOf(this.#host.clock.coarse()) + AHEAD;
    return expires - NEAR_MS >= Math.max(this.#wheel.next, present) * TICK_MS;
  }

  #comeUp(slot: number, now: number): void {
    const { pages, rows } = this.#host;
    const page = pages.at(rows.ownerOf(slot));
    const key = rows.keys[slot]!;
    const held = page?.held(key);
    const isBoxed = isBox(held);
    const expires = isBoxed ? held.expires : rows.expiresOf(slot);
    const staleUntil = Math.max(rows.staleUntilOf(slot), expires);
    if (page === undefined || staleUntil <= now) {
      this.#host.reclaim(slot);
      return;
    }
    const plain = !isBoxed && this.#isFar(expires);
    if (isBoxed) held.slot = slot;
    else if (!plain) page.replace(key, new Box(held, slot, expires));
    rows.writeTimes(slot, expires, staleUntil);
    this.set(slot, expires, staleUntil, plain);
  }
}
