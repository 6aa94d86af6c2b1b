// Lets loops sleep until something has happened, or for a time.
import type { Clock } from "../../core/clock.ts";

export class Signal {
  readonly #clock: Clock;
  #isRaised = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What is raised while nobody waits is not lost. */
  raise(): void {
    this.#isRaised = true;
    this.#wake?.();
  }

  /** `holdsProcess`: the process must not end meanwhile. */
  async wait(ms: number, holdsProcess = false): Promise<void> {
    if (!this.#isRaised) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(ms, resolve);
        if (holdsProcess) timer.hold?.(true);
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
      this.#wake = undefined;
    }
    this.#isRaised = false;
  }
}

/** Pauses of any number of loops, all of which end when the feed is closed. */
export class Pauses {
  readonly #clock: Clock;
  readonly #wakes = new Set<() => void>();
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `holdsProcess`: the process must not end meanwhile. */
  async pause(ms: number, holdsProcess: boolean): Promise<void> {
    if (this.#isOver) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        timer.cancel();
        this.#wakes.delete(wake);
        resolve();
      };
      const timer = this.#clock.after(ms, wake);
      if (holdsProcess) timer.hold?.(true);
      this.#wakes.add(wake);
    });
  }

  end(): void {
    this.#isOver = true;
    for (const wake of [...this.#wakes]) wake();
  }
}
