// The push channel of a reference client: like Redis tracking, one push per key and read, own changes included.
import type { PushChannel } from "../../src/core/backend.ts";
import type { Clock } from "../../src/core/clock.ts";

export class ReferencePush implements PushChannel {
  readonly #clock: Clock;
  readonly #delayMs: number;
  readonly #listeners = new Set<(key: string | undefined) => void>();
  readonly #tracked = new Set<string>();
  #open = false;
  #generation = 0;

  constructor(clock: Clock, delayMs: number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  epoch(): number {
    return this.#open ? this.#generation : 0;
  }

  onChange(listener: (key: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** A read was executed: the next change of this key is pushed. */
  track(key: string): void {
    this.#tracked.add(key);
  }

  changed(key: string | undefined): void {
    if (key !== undefined && !this.#tracked.delete(key)) return;
    const generation = this.#generation;
    const tell = (): void => {
      if (!this.#open || generation !== this.#generation) return;
      for (const listener of [...this.#listeners]) listener(key);
    };
    if (this.#delayMs === 0) tell();
    else this.#clock.after(this.#delayMs, tell);
  }

  /** A new connection: pending pushes of the old one are dropped. */
  reset(): void {
    this.#open = true;
    this.#generation++;
    this.#tracked.clear();
    for (const listener of [...this.#listeners]) listener(undefined);
  }

  close(): void {
    this.#open = false;
    this.#tracked.clear();
  }
}
