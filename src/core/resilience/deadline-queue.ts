// Deadlines of one length for many calls: they fall due in the order they were set, so one timer serves them all.
import type { Clock, Timer } from "../clock.ts";
import { atEndOfTurn, holdProcess, releaseProcess } from "../event-loop.ts";

/** The calls made in one turn of the event loop: their time begins when the turn is over and they are sent. */
class Turn {
  due = Number.POSITIVE_INFINITY;
}

const NO_TURN = new Turn();

/** Something that has to settle in time. */
export abstract class Deadline {
  /** Whether it is over: met or missed. */
  isOver = false;
  /** Of the queue it is in. */
  turn = NO_TURN;
  next: Deadline | undefined;
  #watch: DeadlineQueue | undefined;

  constructor(watch: DeadlineQueue) {
    this.#watch = watch;
  }

  /** Ends it. Returns whether it was still open. */
  meet(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#watch?.over();
    this.#watch = undefined;
    return true;
  }

  /** Called when it was not met in time; it is over then. */
  abstract missed(): void;
}

export class DeadlineQueue {
  readonly #clock: Clock;
  readonly #limitMs: number;
  #first: Deadline | undefined;
  #last: Deadline | undefined;
  #open = 0;
  #turn: Turn | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  add(deadline: Deadline): void {
    if (++this.#open === 1) holdProcess();
    if (this.#limitMs === Number.POSITIVE_INFINITY) return;
    this.#forgetMet();
    if (this.#last === undefined) this.#first = deadline;
    else this.#last.next = deadline;
    this.#last = deadline;
    deadline.turn = this.#turn ?? this.#beginTurn();
  }

  /** One of them was met or missed. */
  over(): void {
    if (--this.#open === 0) releaseProcess();
  }

  #beginTurn(): Turn {
    const turn = new Turn();
    this.#turn = turn;
    atEndOfTurn(this.#endTurn);
    return turn;
  }

  readonly #endTurn = (): void => {
    if (this.#turn !== undefined) this.#turn.due = this.#clock.now() + this.#limitMs;
    this.#turn = undefined;
    if (this.#timer === undefined && this.#open > 0) this.#arm(this.#limitMs);
  };

  #oldest(): Deadline | undefined {
    this.#forgetMet();
    return this.#first;
  }

  #forgetMet(): void {
    while (this.#first?.isOver === true) {
      const { next }: Deadline = this.#first;
      this.#first.next = undefined;
      this.#first = next;
    }
    if (this.#first === undefined) this.#last = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#look());
  }

  #look(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    const oldest = this.#oldest();
    // The end of its turn arms the timer for one whose time has not begun.
    if (oldest === undefined || oldest.turn.due === Number.POSITIVE_INFINITY) return;
    if (oldest.turn.due > now) this.#arm(oldest.turn.due - now);
    // A process that was busy or stopped first looks at what has arrived meanwhile.
    else setImmediate(() => this.#judge(now));
  }

  #judge(now: number): void {
    for (;;) {
      const oldest = this.#oldest();
      if (oldest === undefined || oldest.turn.due > now) break;
      if (oldest.meet()) oldest.missed();
    }
    this.#timer?.cancel();
    this.#look();
  }
}
