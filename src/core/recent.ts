// What was invalidated a short while ago, in case a server without it takes over.
import type { Clock } from "./clock.ts";
import type { Remedy } from "./outbox.ts";

interface Done {
  readonly remedy: Remedy;
  readonly at: number;
}

/** How long an acknowledged write may take to reach a replica, generously; and how many are remembered. */
export const REPLICATION_MS = 30_000;
const KEPT_MS = 4 * REPLICATION_MS;
const MOST_KEPT = 50_000;

export class Recent {
  readonly #clock: Clock;
  #done: Done[] = [];
  #first = 0;
  /** Whatever was done up to this moment may have been forgotten. */
  #forgottenUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(remedies: readonly Remedy[]): void {
    const at = this.#clock.now();
    for (const remedy of remedies) this.#done.push({ remedy, at });
    this.#trim(at - KEPT_MS);
  }

  /** What was done since then; undefined if some of it was forgotten. */
  since(moment: number): readonly Remedy[] | undefined {
    if (this.#forgottenUntil >= moment) return undefined;
    return this.#done
      .slice(this.#first)
      .filter(({ at }) => at >= moment)
      .map(({ remedy }) => remedy);
  }

  #trim(oldest: number): void {
    const done = this.#done;
    for (; this.#first < done.length; this.#first++) {
      const { at } = done[this.#first] as Done;
      if (at >= oldest && done.length - this.#first <= MOST_KEPT) break;
      this.#forgottenUntil = at;
    }
    if (this.#first > MOST_KEPT) {
      this.#done = done.slice(this.#first);
      this.#first = 0;
    }
  }
}
