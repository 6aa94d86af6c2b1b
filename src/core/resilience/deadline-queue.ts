// Deadlines of equal length for many calls: they expire in the order they were set, so one timer serves them all.
import type { Clock, Timer } from "../clock.ts";
import { atEndOfTurn, holdProcess, releaseProcess } from "../event-loop.ts";
import { SUSPENDED_MS } from "./with-deadline.ts";

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

/** A timer that fires this much later than planned means that the event loop was blocked. */
const BUSY_MS = 50;

export class DeadlineQueue {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #isSuspended: () => boolean;
  #first: Deadline | undefined;
  #last: Deadline | undefined;
  #open = 0;
  #turn: Turn | undefined;
  #timer: Timer | undefined;
  /** Since when deadlines have not applied; undefined: they do. */
  #suspendedAt: number | undefined;
  /** The store is disconnected: no timer is left once the last call is over. */
  #isResting = false;
  #idle: (() => void)[] = [];

  /** `isSuspended`: whether deadlines do not apply for now. */
  constructor(clock: Clock, limitMs: number, isSuspended: () => boolean = () => false) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#isSuspended = isSuspended;
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
    if (--this.#open > 0) return;
    releaseProcess();
    if (this.#isResting) this.#disarm();
    if (this.#idle.length > 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Resolves when no call is in progress. */
  idle(): Promise<void> {
    return this.#open === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Leaves no timer behind, now or when the last call is over: usually one timer serves many calls and outlasts them. */
  rest(): void {
    this.#isResting = true;
    if (this.#open === 0) this.#disarm();
  }

  resume(): void {
    this.#isResting = false;
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
    const plannedAt = this.#clock.now() + delayMs;
    this.#timer = this.#clock.after(delayMs, () => this.#check(plannedAt));
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #check(plannedAt = Number.POSITIVE_INFINITY): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    // While the event loop was blocked nothing could be sent or received: calls get as long again.
    if (now - plannedAt > BUSY_MS) {
      this.#arm(Math.min(now - plannedAt, this.#limitMs));
      return;
    }
    const oldest = this.#oldest();
    // A deadline whose time has not started is armed at the end of its turn.
    if (oldest === undefined || oldest.turn.due === Number.POSITIVE_INFINITY) return;
    if (oldest.turn.due > now) this.#arm(oldest.turn.due - now);
    // After a blocked event loop or a stopped process, replies that have already arrived are processed first.
    else setImmediate(() => this.#expire(now));
  }

  #expire(now: number): void {
    const pauseMs = this.#pauseMs(now);
    if (pauseMs > 0) {
      this.#timer?.cancel();
      this.#arm(pauseMs);
      return;
    }
    for (;;) {
      const oldest = this.#oldest();
      if (oldest === undefined || oldest.turn.due > now) break;
      if (oldest.meet()) oldest.missed();
    }
    this.#timer?.cancel();
    this.#check();
  }

  /** How long deadlines do not apply; after a suspension as long again, for what calls had to wait to ask. */
  #pauseMs(now: number): number {
    if (this.#isSuspended()) {
      this.#suspendedAt ??= now;
      return SUSPENDED_MS;
    }
    const since = this.#suspendedAt;
    this.#suspendedAt = undefined;
    return since === undefined ? 0 : Math.min(now - since, this.#limitMs);
  }
}
