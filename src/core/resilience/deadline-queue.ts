// Deadlines of equal length for many calls: they expire in the order they were set, so one timer serves them all.
import type { Clock, Timer } from "../clock.ts";
import { atEndOfTurn, holdProcess, releaseProcess } from "../event-loop.ts";

/** The calls of one event-loop turn: their time starts when the turn ends and they are sent. */
class Turn {
  due = Number.POSITIVE_INFINITY;
}

const NO_TURN = new Turn();

/** Something that must settle in time. */
export abstract class Deadline {
  /** Whether it is over: met or missed. */
  isOver = false;
  /** Links of the queue. */
  turn = NO_TURN;
  next: Deadline | undefined;
  #queue: DeadlineQueue | undefined;

  constructor(queue: DeadlineQueue) {
    this.#queue = queue;
  }

  /** Marks it as met. Returns whether it was still open. */
  meet(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#queue?.over();
    this.#queue = undefined;
    return true;
  }

  /** Called when the deadline passed; it is over then. */
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
    this.#dropMet();
    if (this.#last === undefined) this.#first = deadline;
    else this.#last.next = deadline;
    this.#last = deadline;
    deadline.turn = this.#turn ?? this.#beginTurn();
  }

  /** A deadline was met or missed. */
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
    this.#dropMet();
    return this.#first;
  }

  #dropMet(): void {
    while (this.#first?.isOver === true) {
      const { next }: Deadline = this.#first;
      this.#first.next = undefined;
      this.#first = next;
    }
    if (this.#first === undefined) this.#last = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#check());
  }

  #check(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    const oldest = this.#oldest();
    // A deadline whose time has not started is armed at the end of its turn.
    if (oldest === undefined || oldest.turn.due === Number.POSITIVE_INFINITY) return;
    if (oldest.turn.due > now) this.#arm(oldest.turn.due - now);
    // After a blocked event loop or a stopped process, replies that have already arrived are processed first.
    else setImmediate(() => this.#expire(now));
  }

  #expire(now: number): void {
    for (;;) {
      const oldest = this.#oldest();
      if (oldest === undefined || oldest.turn.due > now) break;
      if (oldest.meet()) oldest.missed();
    }
    this.#timer?.cancel();
    this.#check();
  }
}
