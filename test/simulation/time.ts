// Simulated time: stands still until the scheduler lets it pass, and the clock of each process on top of it.
import type { Clock, Timer } from "../../src/core/clock.ts";
import { seededRandom } from "../../src/testing/manual-clock.ts";

interface PendingTimer {
  readonly due: number;
  readonly order: number;
  readonly clock: ProcessClock;
  readonly run: () => void;
}

const BEGINNING = Date.UTC(2026, 0, 1);

export class SimulatedTime {
  now = BEGINNING;
  readonly #timers = new Set<PendingTimer>();
  #order = 0;

  /** Milliseconds since the beginning of the schedule. */
  get elapsed(): number {
    return this.now - BEGINNING;
  }

  add(clock: ProcessClock, delayMs: number, run: () => void): Timer {
    const due = this.now + Math.max(0, delayMs);
    const timer: PendingTimer = { due, order: this.#order++, clock, run };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** When the next timer of a running process is due; Infinity if there is none. */
  get nextDue(): number {
    return this.#next()?.due ?? Number.POSITIVE_INFINITY;
  }

  /** When the next timer of a clock is due; Infinity if there is none. */
  dueOf(clock: ProcessClock): number {
    return this.#next(clock)?.due ?? Number.POSITIVE_INFINITY;
  }

  /** When the timers of a clock are due, in order. */
  duesOf(clock: ProcessClock): number[] {
    const dues: number[] = [];
    for (const timer of this.#timers) if (timer.clock === clock) dues.push(timer.due);
    return dues.sort((one, other) => one - other);
  }

  /** Lets time pass until the next timer of a running process, or of this one, is due, and runs it. */
  tick(clock?: ProcessClock): boolean {
    const next = this.#next(clock);
    if (next === undefined) return false;
    this.#timers.delete(next);
    this.now = Math.max(this.now, next.due);
    next.run();
    return true;
  }

  /** Lets time pass, at most until the next timer is due. */
  pass(ms: number): void {
    this.now = Math.max(this.now, Math.min(this.now + ms, this.nextDue));
  }

  timersOf(clock: ProcessClock): number {
    let count = 0;
    for (const timer of this.#timers) if (timer.clock === clock) count++;
    return count;
  }

  /** A process that has died runs nothing more. */
  forget(clock: ProcessClock): void {
    for (const timer of this.#timers) if (timer.clock === clock) this.#timers.delete(timer);
  }

  #next(clock?: ProcessClock): PendingTimer | undefined {
    let next: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.clock.isStopped || (clock !== undefined && timer.clock !== clock)) continue;
      if (next === undefined || timer.due < next.due || (timer.due === next.due && timer.order < next.order))
        next = timer;
    }
    return next;
  }
}

/** The clock of one process, which may differ from that of the others by a constant. */
export class ProcessClock implements Clock {
  /** The process is frozen: its timers run late. */
  isStopped = false;
  /** How many random numbers have been drawn. */
  draws = 0;
  readonly random: () => number;
  readonly #time: SimulatedTime;
  readonly #skewMs: number;

  constructor(time: SimulatedTime, seed: number, skewMs: number) {
    this.#time = time;
    this.#skewMs = skewMs;
    const random = seededRandom(seed);
    this.random = () => {
      this.draws++;
      return random();
    };
  }

  readonly now = (): number => this.#time.now + this.#skewMs;
  readonly coarse = (): number => this.#time.now + this.#skewMs;
  readonly after = (delayMs: number, run: () => void): Timer =>
    delayMs === Number.POSITIVE_INFINITY ? { cancel() {} } : this.#time.add(this, delayMs, run);

  readonly token = (): string => {
    let token = "";
    for (let at = 0; at < 8; at++) token += String.fromCharCode(Math.floor(this.random() * 256));
    return token;
  };
}
