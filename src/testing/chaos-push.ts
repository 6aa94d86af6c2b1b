// The push channel of a ChaosBackend: forwards, delays or drops pushes and reflects an outage in its epoch.
import type { PushChannel } from "../core/backend.ts";
import type { Clock } from "../core/clock.ts";

/** Added per restored channel: keeps its epochs distinct without reaching the wrapped channel's next epoch. */
const GENERATION_STEP = 1 / 4096;

export class ChaosPush implements PushChannel {
  readonly #inner: PushChannel;
  readonly #clock: () => Clock;
  readonly #listeners = new Set<(key: string | undefined) => void>();
  #delayMs = 0;
  #lost = false;
  #generation = 0;

  constructor(inner: PushChannel, clock: () => Clock) {
    this.#inner = inner;
    this.#clock = clock;
    inner.onChange((key) => this.#pass(key));
  }

  epoch(key: string): number {
    const epoch = this.#lost ? 0 : this.#inner.epoch(key);
    return epoch === 0 ? 0 : epoch + this.#generation * GENERATION_STEP;
  }

  onChange(listener: (key: string | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  lose(): void {
    this.#lost = true;
  }

  restore(): void {
    if (!this.#lost) return;
    this.#lost = false;
    this.#generation++;
    this.#notify(undefined);
  }

  #pass(key: string | undefined): void {
    if (this.#delayMs === 0) this.#notify(key);
    else this.#clock().after(this.#delayMs, () => this.#notify(key));
  }

  #notify(key: string | undefined): void {
    if (this.#lost) return;
    for (const listener of [...this.#listeners]) listener(key);
  }
}
