// Turns the wheel and reclaims what is spent, in small slices by one timer that runs only while there is something to tend.
import type { Clock, Timer } from "../../core/clock.ts";

/** What is tended; see Table. */
export interface Tended {
  readonly needsTending: boolean;
  readonly sweepLength: number;
  /** How many hits are not looked at closer: only while it is tended in time. */
  unchecked: number;
  onOccupied: (() => void) | undefined;
  turn(most: number): boolean;
  sweep(slots: number): number;
}

/** Entries or slots seen to in a turn: a millisecond or two. */
const SLICE = 8_192;
const PAUSE_MS = 1_000;
/** How long a pass over all slots takes while little is found. */
const PASS_MS = 20_000;
/** The pause while much is found, and the shortest one between two looks at slots. */
const HASTE_MS = 10;
/** Much is found when one slot in this many was reclaimed. */
const MUCH = 4;

export class Sweeper {
  readonly #table: Tended;
  readonly #clock: Clock;
  #timer: Timer | undefined;

  constructor(table: Tended, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  start(): void {
    this.#table.onOccupied = () => this.#arm(PAUSE_MS);
    if (this.#table.needsTending) this.#arm(0);
  }

  /** Cancels the timer; `start` takes it up again. */
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

  /** Returns how long to wait before the next look. */
  #sweep(): number {
    const length = this.#table.sweepLength;
    if (length === 0) return PAUSE_MS;
    const looked = Math.min(SLICE, length);
    const reclaimed = this.#table.sweep(looked);
    if (reclaimed * MUCH > looked) return HASTE_MS;
    return Math.min(PAUSE_MS, Math.max(HASTE_MS, (PASS_MS * SLICE) / length));
  }
}
