// A cheap deadline around any promise: one timer, cleared as soon as the promise settles.
import type { Clock, Timer } from "./clock.ts";

/**
 * Settles as `work` does, or after `limitMs` as `late` does: with what it returns, or what it throws.
 * What `work` does afterwards is ignored, also its rejection; the caller decides what an unknown outcome means.
 */
export function withDeadline<T, L = never>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
  late: () => L,
): Promise<T | L> {
  if (limitMs === Number.POSITIVE_INFINITY) return work;
  return new Promise<T | L>((resolve, reject) => {
    const timer = clock.after(limitMs, () => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    });
    work.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}

/** Something that has to settle in time. */
export interface Deadline {
  /** Whether it is over: met or missed. */
  readonly isOver: boolean;
  meet(): void;
}

const NOTHING = (): void => {};

class Waiting implements Deadline {
  isOver = false;
  readonly due: number;
  next: Waiting | undefined;
  #miss: () => void;
  #over: () => void;

  constructor(due: number, miss: () => void, over: () => void) {
    this.due = due;
    this.#miss = miss;
    this.#over = over;
  }

  meet(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#over();
    // It stays in the queue for a while: nothing else should with it.
    this.#miss = NOTHING;
    this.#over = NOTHING;
  }

  miss(): void {
    const miss = this.#miss;
    this.meet();
    miss();
  }
}

/** Deadlines of one length for many: they fall due in the order they were set, so one timer serves them all. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #limitMs: number;
  #first: Waiting | undefined;
  #last: Waiting | undefined;
  #open = 0;
  #timer: Timer | undefined;
  readonly #over = (): void => {
    // Nobody waits any more: the timer need not keep the process alive.
    if (--this.#open === 0) this.#timer?.hold?.(false);
  };

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /** Calls `miss` unless it is met in time. */
  set(miss: () => void): Deadline {
    const waiting = new Waiting(this.#clock.now() + this.#limitMs, miss, this.#over);
    this.#open++;
    if (this.#limitMs === Number.POSITIVE_INFINITY) return waiting;
    this.#forgetMet();
    if (this.#last === undefined) this.#first = waiting;
    else this.#last.next = waiting;
    this.#last = waiting;
    if (this.#timer === undefined) this.#arm(this.#limitMs);
    else if (this.#open === 1) this.#timer.hold?.(true);
    return waiting;
  }

  #forgetMet(): void {
    while (this.#first?.isOver === true) {
      const { next }: Waiting = this.#first;
      this.#first.next = undefined;
      this.#first = next;
    }
    if (this.#first === undefined) this.#last = undefined;
  }

  #arm(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#look());
    this.#timer.hold?.(true);
  }

  #look(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    for (;;) {
      this.#forgetMet();
      const oldest = this.#first;
      if (oldest === undefined) return;
      if (oldest.due > now) {
        this.#arm(oldest.due - now);
        return;
      }
      oldest.miss();
    }
  }
}
