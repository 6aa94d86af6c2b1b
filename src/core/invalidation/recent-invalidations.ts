// What was invalidated a short while ago, in case a server without it takes over.
import type { Clock } from "../clock.ts";
import type { PendingInvalidation } from "./outbox.ts";

/** How long an acknowledged write may take to reach a replica, generously; and how many are remembered. */
export const REPLICATION_MS = 30_000;
const KEPT_MS = 4 * REPLICATION_MS;
const MOST_KEPT = 50_000;

export class RecentInvalidations {
  readonly #clock: Clock;
  // Two lists instead of one of pairs: there is an item for every write.
  #remedies: (PendingInvalidation | undefined)[] = [];
  #times: number[] = [];
  /** Those before it are forgotten. */
  #first = 0;
  /** Whatever was done up to this moment may have been forgotten. */
  #forgottenUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether something was done so lately that a server without it may still take over: somebody has to look for that. */
  get isWatched(): boolean {
    const last = this.#times.at(-1);
    return last !== undefined && last >= this.#clock.now() - KEPT_MS;
  }

  add(remedies: readonly PendingInvalidation[]): void {
    const at = this.#clock.now();
    for (const remedy of remedies) {
      this.#remedies.push(remedy);
      this.#times.push(at);
    }
    this.#trim(at - KEPT_MS);
  }

  /** What was done since then; undefined if some of it was forgotten. */
  since(moment: number): readonly PendingInvalidation[] | undefined {
    if (this.#forgottenUntil >= moment) return undefined;
    return this.#remedies.flatMap((remedy, index) =>
      remedy !== undefined && (this.#times[index] as number) >= moment ? [remedy] : [],
    );
  }

  #trim(oldest: number): void {
    const times = this.#times;
    for (; this.#first < times.length; this.#first++) {
      const at = times[this.#first] as number;
      if (at >= oldest && times.length - this.#first <= MOST_KEPT) break;
      this.#forgottenUntil = at;
      this.#remedies[this.#first] = undefined;
    }
    if (this.#first > MOST_KEPT) {
      this.#remedies = this.#remedies.slice(this.#first);
      this.#times = times.slice(this.#first);
      this.#first = 0;
    }
  }
}
