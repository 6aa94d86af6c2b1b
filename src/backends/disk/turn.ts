// A committer's turn at the gate: while another process opens the store, it asks again and again.
import type { Clock, Timer } from "../../core/clock.ts";
import type { Gate } from "./lock/gate.ts";

const ASK_EVERY_MS = 2;
/** When nobody waits for it any more: one who opens takes much less time unless it is stopped. */
const ASK_LATE_EVERY_MS = 50;

export class Turn {
  readonly #gate: Gate;
  readonly #clock: Clock;
  #timer: Timer | undefined;
  /** When it has waited too long. */
  #due = Number.POSITIVE_INFINITY;

  constructor(gate: Gate, clock: Clock) {
    this.#gate = gate;
    this.#clock = clock;
  }

  get isAwaited(): boolean {
    return this.#timer !== undefined;
  }

  get isOverdue(): boolean {
    return this.#clock.now() >= this.#due;
  }

  /** Whether it has come; if not, calls back when it is time to ask again. `due`: until when it should have come. */
  begin(due: number, again: () => void): boolean {
    if (this.#gate.enter()) {
      this.#due = Number.POSITIVE_INFINITY;
      return true;
    }
    this.#due = Math.min(this.#due, due);
    const { isOverdue } = this;
    this.#timer = this.#clock.after(isOverdue ? ASK_LATE_EVERY_MS : ASK_EVERY_MS, () => {
      this.#timer = undefined;
      again();
    });
    // What waits was accepted, so the process is not to end before that is over.
    this.#timer.hold?.(!isOverdue);
    return false;
  }

  end(): void {
    this.#gate.leave();
  }
}
