// Removes stale age rows. A write does not check what another process has just written under the same key, so the row of
// the overwritten record may remain. Stale rows of stamps would never be removed otherwise: eviction reaches them last.

import { removalFor } from "./change.ts";
import type { Committer } from "./committer.ts";
import { type Environment, MOST_BYTES_AT_ONCE } from "./environment.ts";
import { writtenBefore } from "./layout/index-row.ts";
import { ChangeOperation } from "./operation.ts";

/** By then every concurrent write has been committed. */
const SETTLED_MS = 5_000;
const MOST_AT_ONCE = 500;

export class StaleRows {
  readonly #environment: Environment;
  readonly #committer: Committer;
  /** The last row examined, for entries and for records evicted last; each row is examined once. */
  readonly #examined = new Map<boolean, Buffer>();

  constructor(environment: Environment, committer: Committer) {
    this.#environment = environment;
    this.#committer = committer;
  }

  /** Continues after the last row examined. Returns whether it found any. */
  remove(now: number, limitMs: number): boolean {
    const ofEntries = this.#removeStale(false, now, limitMs);
    return this.#removeStale(true, now, limitMs) || ofEntries;
  }

  #removeStale(evictedLast: boolean, now: number, limitMs: number): boolean {
    const range = writtenBefore(now - SETTLED_MS, evictedLast);
    let isFound = false;
    let bytesRead = 0;
    for (const row of this.#environment.rows(range, MOST_AT_ONCE, this.#examined.get(evictedLast))) {
      if (bytesRead >= MOST_BYTES_AT_ONCE) break;
      const bytes = this.#environment.read(row.value);
      bytesRead += bytes?.length ?? 0;
      this.#examined.set(evictedLast, row.key);
      const { change, key, meta } = removalFor(row, bytes, () => false);
      if (meta !== undefined) continue;
      isFound = true;
      this.#committer.add(new ChangeOperation(key, change), limitMs);
    }
    return isFound;
  }
}
