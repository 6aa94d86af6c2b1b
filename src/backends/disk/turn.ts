// Waits at the gate for a commit: while another process opens the store, it polls.
import type { Clock, Timer } from "../../core/clock.ts";
import type { Gate } from "./lock/gate.ts";

const POLL_MS = 2;
/** Interval past the deadline: opening takes much less time unless the process is stopped. */
const LATE_POLL_MS = 50;

export class Turn {
  readonly #gate: Gate;
  readonly #clock: Clock;
  #timer: Timer | undefined;
  /** The deadline of the waiting commit. */
  #due = Number.POSITIVE_INFINITY;

  constructor(gate: Gate, clock: Clock) {
    this.#gate = gate;
    this.#clock = clock;
  }

  get isAwaited(): boolean {
    return this.#timer !== undefined;
  }

  get isOverdue(): boolean {
    return this.#due !== Number.POSITIVE_INFINITY && this.#clock.now() >= this.#due;
  }

  /** Returns whether the commit may begin; if not, calls `again` later. `due`: the deadline of the commit. */
  begin(due: number, again: () => void): boolean {
    if (this.#gate.enter()) {
      this.#due = Number.POSITIVE_INFINITY;
      return true;
    }
    this.#due = Math.min(this.#due, due);
    const { isOverdue } = this;
    this.#timer = this.#clock.after(isOverdue ? LATE_POLL_MS : POLL_MS, () => {
      this.#timer = undefined;
      again();
    });
    // The queued operations were accepted, so they keep the process alive until their deadline.
    this.#timer.hold?.(!isOverdue);
    return false;
  }

  end(): void {
    this.#gate.leave();
  }
}
