// Schedules when an entry is boxed, because its expiry is near, and when it is reclaimed.
//
// A timer turns the wheel ahead of time. Every unboxed value is fresh until the horizon, before which no entry is due. A
// hit past the horizon, because the timer is late, checks the entry's own expiry, so a late timer costs time but never
// correctness.
import { type Clock, NEAR_EXPIRY_MS } from "../../../core/clock.ts";
import { Box, isBox } from "../layout/box.ts";
import type { Pages } from "../layout/pages.ts";
import type { Rows } from "../layout/rows.ts";
import { TICK_MS, tickOf, Wheel } from "./wheel.ts";

/** Ticks by which the wheel is turned ahead, so that the horizon is at least one tick away afterwards. */
const AHEAD = 2;

export interface ScheduleHost {
  readonly clock: Clock;
  readonly rows: Rows<unknown>;
  readonly pages: Pages;
  /** Removes an expired entry. */
  reclaim(slot: number): void;
  /** Called when the first entry is scheduled. */
  started(): void;
}

export class Schedule {
  /** Every unboxed value is fresh until then. */
  horizon = Number.POSITIVE_INFINITY;
  readonly #host: ScheduleHost;
  readonly #wheel: Wheel;

  constructor(host: ScheduleHost) {
    this.#host = host;
    this.#wheel = new Wheel(host.rows);
  }

  /** The number of scheduled entries. */
  get size(): number {
    return this.#wheel.size;
  }

  /** Whether an entry with this expiry needs no box yet. */
  canBePlain(expires: number): boolean {
    if (this.#wheel.size === 0 && expires !== Number.POSITIVE_INFINITY) this.#start();
    return this.#isFar(expires);
  }

  /** Schedules an entry to come up in time or earlier. */
  set(slot: number, expires: number, staleUntil: number, plain: boolean): void {
    const wheel = this.#wheel;
    const due = plain ? expires - NEAR_EXPIRY_MS : staleUntil + AHEAD * TICK_MS;
    if (wheel.comesBy(slot, due)) return;
    wheel.unlink(slot);
    if (due === Number.POSITIVE_INFINITY) return;
    if (wheel.size === 0) this.#start();
    wheel.link(slot, due);
  }

  forget(slot: number): void {
    this.#wheel.unlink(slot);
  }

  /** Processes at most this many due entries. Returns how many; fewer than `most` if all are done. */
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

  /** An empty wheel starts at the current tick, so both that and the wheel's position count. */
  #isFar(expires: number): boolean {
    const present = tickOf(this.#host.clock.coarse()) + AHEAD;
    return expires - NEAR_EXPIRY_MS >= Math.max(this.#wheel.next, present) * TICK_MS;
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
