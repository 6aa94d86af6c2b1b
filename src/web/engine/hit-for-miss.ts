// Remembers which keys had a response that could not be stored, so that nobody waits for a second one of the kind.
import type { Clock } from "../../core/clock.ts";

const REMEMBERED = 4_096;
const REMEMBERED_MS = 60_000;

export class HitForMiss {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();
  readonly #loading = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isAnybodyWaiting(): boolean {
    return this.#loading.size > 0;
  }

  /** Whether somebody is waiting for the handler under this key and would probably wait in vain. */
  isWaitedForInVain(key: string): boolean {
    if (!this.#loading.has(key)) return false;
    const until = this.#until.get(key);
    return until !== undefined && this.#clock.now() < until;
  }

  begun(key: string): void {
    this.#loading.set(key, (this.#loading.get(key) ?? 0) + 1);
  }

  ended(key: string): void {
    const left = (this.#loading.get(key) ?? 1) - 1;
    if (left === 0) this.#loading.delete(key);
    else this.#loading.set(key, left);
  }

  remember(key: string): void {
    this.#until.delete(key);
    this.#until.set(key, this.#clock.now() + REMEMBERED_MS);
    if (this.#until.size > REMEMBERED) this.#until.delete(this.#until.keys().next().value!);
  }

  forget(key: string): void {
    this.#until.delete(key);
  }
}
