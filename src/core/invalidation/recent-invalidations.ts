// Recent invalidations, repeated if a failover loses them.
import type { Clock } from "../clock.ts";
import type { PendingInvalidation } from "./outbox.ts";

/** Generous upper bound of how long an acknowledged write takes to reach a replica. */
export const REPLICATION_MS = 30_000;
const KEPT_MS = 4 * REPLICATION_MS;
const MOST_KEPT = 50_000;

export class RecentInvalidations {
  readonly #clock: Clock;
  // Two arrays instead of one of pairs: there is an item per write.
  #invalidations: (PendingInvalidation | undefined)[] = [];
  #times: number[] = [];
  /** Index of the first one not dropped yet. */
  #first = 0;
  /** Invalidations up to this time may have been dropped. */
  #forgottenUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True while a failover could still lose one of these invalidations. */
  get isWatched(): boolean {
    const last = this.#times.at(-1);
    return last !== undefined && last >= this.#clock.now() - KEPT_MS;
  }

  add(invalidations: readonly PendingInvalidation[]): void {
    const at = this.#clock.now();
    for (const invalidation of invalidations) {
      this.#invalidations.push(invalidation);
      this.#times.push(at);
    }
    this.#trim(at - KEPT_MS);
  }

  /** The invalidations since then; undefined if some of them were dropped. */
  since(moment: number): readonly PendingInvalidation[] | undefined {
    if (this.#forgottenUntil >= moment) return undefined;
    return this.#invalidations.flatMap((invalidation, index) =>
      invalidation !== undefined && (this.#times[index] as number) >= moment ? [invalidation] : [],
    );
  }

  #trim(oldest: number): void {
    const times = this.#times;
    for (; this.#first < times.length; this.#first++) {
      const at = times[this.#first] as number;
      if (at >= oldest && times.length - this.#first <= MOST_KEPT) break;
      this.#forgottenUntil = at;
      this.#invalidations[this.#first] = undefined;
    }
    if (this.#first > MOST_KEPT) {
      this.#invalidations = this.#invalidations.slice(this.#first);
      this.#times = times.slice(this.#first);
      this.#first = 0;
    }
  }
}
