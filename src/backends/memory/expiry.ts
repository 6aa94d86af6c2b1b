// Reclaims expired and dead entries in small slices by one timer, which runs only while there are entries.
import type { Clock, Timer } from "../../core/clock.ts";

/** What is swept; see Slots. */
export interface Sweepable {
  readonly size: number;
  readonly sweepLength: number;
  onOccupied: (() => void) | undefined;
  sweep(slots: number): number;
}

/** Slots looked at in a turn: a fraction of a millisecond. */
const SLICE = 8_192;
/** How long a pass over all slots takes while little is found. */
const PASS_MS = 20_000;
/** The pause while much is found, and the shortest one. */
const HASTE_MS = 10;
/** Much is found when one slot in this many was reclaimed. */
const MUCH = 4;

export class Sweeper {
  readonly #slots: Sweepable;
  readonly #clock: Clock;
  #timer: Timer | undefined;

  constructor(slots: Sweepable, clock: Clock) {
    this.#slots = slots;
    this.#clock = clock;
  }

  start(): void {
    this.#slots.onOccupied = () => this.#arm(this.#pause());
    if (this.#slots.size > 0) this.#arm(this.#pause());
  }

  /** Cancels the timer; `start` takes it up again. */
  stop(): void {
    this.#slots.onOccupied = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer ??= this.#clock.after(delayMs, () => this.#turn());
  }

  #turn(): void {
    this.#timer = undefined;
    const looked = Math.min(SLICE, this.#slots.sweepLength);
    const reclaimed = this.#slots.sweep(SLICE);
    if (this.#slots.size > 0) this.#arm(reclaimed * MUCH > looked ? HASTE_MS : this.#pause());
  }

  #pause(): number {
    return Math.min(PASS_MS, Math.max(HASTE_MS, (PASS_MS * SLICE) / Math.max(1, this.#slots.sweepLength)));
  }
}
