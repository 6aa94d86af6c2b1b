// Turns the timing wheel and reclaims dead entries in small slices, with one timer that runs only while needed.
import type { Clock, Timer } from "../../core/clock.ts";

/** What the sweeper maintains; see Table. */
export interface SweptTable {
  readonly needsTending: boolean;
  readonly sweepLength: number;
  /** Hits served without a check of the clock; 0 while no sweeper runs. */
  unchecked: number;
  onOccupied: (() => void) | undefined;
  turn(most: number): boolean;
  sweep(slots: number): number;
}

/** Entries or slots processed per timer: a millisecond or two. */
const SLICE = 8_192;
const PAUSE_MS = 1_000;
/** Duration of a pass over all slots while few entries are dead. */
const PASS_MS = 20_000;
/** The pause while many entries are dead, and the shortest pause between two slices. */
const HASTE_MS = 10;
/** Many are dead if one slot in this many was reclaimed. */
const MANY = 4;

export class Sweeper {
  readonly #table: SweptTable;
  readonly #clock: Clock;
  #timer: Timer | undefined;

  constructor(table: SweptTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  start(): void {
    this.#table.onOccupied = () => this.#arm(PAUSE_MS);
    if (this.#table.needsTending) this.#arm(0);
  }

  /** Cancels the timer; `start` resumes. */
  stop(): void {
    this.#table.onOccupied = undefined;
    this.#table.unchecked = 0;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer ??= this.#clock.after(delayMs, () => this.#tend());
  }

  #tend(): void {
    this.#timer = undefined;
    const upToDate = this.#table.turn(SLICE);
    const pause = this.#sweep();
    if (this.#table.needsTending) this.#arm(upToDate ? pause : 0);
  }

  /** Returns the pause before the next slice. */
  #sweep(): number {
    const length = this.#table.sweepLength;
    if (length === 0) return PAUSE_MS;
    const examined = Math.min(SLICE, length);
    const reclaimed = this.#table.sweep(examined);
    if (reclaimed * MANY > examined) return HASTE_MS;
    return Math.min(PAUSE_MS, Math.max(HASTE_MS, (PASS_MS * SLICE) / length));
  }
}
