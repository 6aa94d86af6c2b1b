// Rows of age that no longer lead to their record. A write does not wait until it has seen what another process has just
// put in its place, so that one's row stays behind. Those of stamps would be the last to make room, and never go.
import type { Committer } from "./committer.ts";
import { type Environment, MOST_BYTES_AT_ONCE } from "./environment.ts";
import { writtenBefore } from "./layout/index-row.ts";
import { ChangeOperation } from "./operation.ts";
import { removalBy } from "./row-removal.ts";

/** By then, whoever wrote at the same time as somebody else has committed. */
const SETTLED_MS = 5_000;
const MOST_AT_ONCE = 500;

export class StaleRows {
  readonly #environment: Environment;
  readonly #committer: Committer;
  /** How far entries, and what leaves last, have been looked through: each row once. */
  readonly #seen = new Map<boolean, Buffer>();

  constructor(environment: Environment, committer: Committer) {
    this.#environment = environment;
    this.#committer = committer;
  }

  /** Goes on from where it was. Returns whether it found any. */
  remove(now: number, limitMs: number): boolean {
    const ofEntries = this.#look(false, now, limitMs);
    return this.#look(true, now, limitMs) || ofEntries;
  }

  #look(leavesLast: boolean, now: number, limitMs: number): boolean {
    const range = writtenBefore(now - SETTLED_MS, leavesLast);
    let isFound = false;
    let bytesSeen = 0;
    for (const row of this.#environment.rows(range, MOST_AT_ONCE, this.#seen.get(leavesLast))) {
      if (bytesSeen >= MOST_BYTES_AT_ONCE) break;
      const bytes = this.#environment.read(row.value);
      bytesSeen += bytes?.length ?? 0;
      this.#seen.set(leavesLast, row.key);
      const { change, key, facts } = removalBy(row, bytes);
      if (facts !== undefined) continue;
      isFound = true;
      this.#committer.add(new ChangeOperation(key, change), limitMs);
    }
    return isFound;
  }
}
