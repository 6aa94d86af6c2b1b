// After a load failed and a stale value was there to be served: how long that value is served without another load.
import type { Clock } from "../clock.ts";
import type { Found } from "../namespace.ts";

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Beyond this many keys the oldest pause is forgotten. */
const MOST_PAUSES = 10_000;

interface Pause {
  /** The stale entry: another one under the same key has nothing to do with the failure. */
  readonly id: Found["id"];
  readonly lengthMs: number;
  readonly until: number;
}

export class LoadPauses {
  readonly #clock: Clock;
  readonly #pauses = new Map<string, Pause>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether to serve this stale value instead of loading. */
  covers(key: string, stale: Pick<Found, "id">): boolean {
    const pause = this.#pauses.get(key);
    return pause !== undefined && pause.id === stale.id && this.#clock.now() < pause.until;
  }

  /** Whether a load of this key has failed lately. */
  has(key: string): boolean {
    return this.#pauses.has(key);
  }

  failed(key: string, stale: Found): void {
    const last = this.#pauses.get(key);
    const now = this.#clock.now();
    // A failure long after the last one starts over.
    const isRepeated = last !== undefined && last.id === stale.id && now < last.until + LONGEST_PAUSE_MS;
    const lengthMs = isRepeated ? Math.min(last.lengthMs * 2, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS;
    this.#pauses.delete(key);
    this.#pauses.set(key, { id: stale.id, lengthMs, until: now + lengthMs });
    if (this.#pauses.size > MOST_PAUSES) this.end(this.#pauses.keys().next().value as string);
  }

  end(key: string): void {
    this.#pauses.delete(key);
  }
}
