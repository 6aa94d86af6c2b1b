// A clock that moves by itself, a millisecond a turn of the event loop: time passes as against a server, and no test sleeps.
import { ManualClock, settle } from "../../src/testing/index.ts";

export class RunningClock extends ManualClock {
  #stopped = false;

  /** Starts it; `stop` ends it. */
  start(): void {
    this.#run().catch(() => {});
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when the clock has come that far by itself. */
  async passed(ms: number): Promise<void> {
    const due = this.now() + ms;
    while (this.now() < due) await settle();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) await this.advance(1);
  }
}
