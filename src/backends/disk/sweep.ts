// Removes what has ended or is left over, a little at a time, while the store is used; a process that does not use it rests.
import type { Clock, Timer } from "../../core/clock.ts";
import type { Committer } from "./committer.ts";
import { type Environment, MOST_BYTES_AT_ONCE } from "./environment.ts";
import { endedBy } from "./layout/index-row.ts";
import { ChangeOperation } from "./operation.ts";
import { removalBy } from "./row-removal.ts";
import { StaleRows } from "./stale-rows.ts";

/** How often somebody looks, about: each process at a time of its own, so that mostly one finds what there is. */
const EVERY_MS = 1_000;
/** How soon after it found as much as it takes at once. */
const AGAIN_MS = 50;
const MOST_AT_ONCE = 200;
/** How many looks there are between two for readers that were killed. */
const LOOKS_A_CHECK = 10;

export class Sweep {
  readonly #environment: Environment;
  readonly #committer: Committer;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #overtaken: StaleRows;
  #timer: Timer | undefined;
  #isUsed = false;
  #looks = 0;

  constructor(environment: Environment, committer: Committer, clock: Clock, limitMs: number) {
    this.#environment = environment;
    this.#committer = committer;
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#overtaken = new StaleRows(environment, committer);
  }

  /** The store is used just now. */
  used(): void {
    this.#isUsed = true;
    if (this.#timer === undefined) this.#later(EVERY_MS);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#isUsed = false;
  }

  #later(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs * (0.5 + this.#clock.random()), () => {
      this.#timer = undefined;
      if (!this.#isUsed) return;
      this.#isUsed = false;
      // Where changes fail it would find the same again and again.
      const isMore = !this.#committer.isStuck && this.#look() && !this.#committer.isReadOnly;
      if (isMore) this.#isUsed = true;
      this.#later(isMore ? AGAIN_MS : EVERY_MS);
    });
  }

  /** Whether there is more than it takes at once. */
  #look(): boolean {
    if (this.#looks++ % LOOKS_A_CHECK === 0) this.#environment.checkReaders();
    const rows = this.#environment.rows(endedBy(this.#clock.now()), MOST_AT_ONCE);
    let bytesSeen = 0;
    for (const row of rows) {
      if (bytesSeen >= MOST_BYTES_AT_ONCE) return true;
      const bytes = this.#environment.read(row.value);
      bytesSeen += bytes?.length ?? 0;
      const { change, key } = removalBy(row, bytes);
      this.#committer.add(new ChangeOperation(key, change), this.#limitMs);
    }
    return this.#overtaken.remove(this.#clock.now(), this.#limitMs) || rows.length === MOST_AT_ONCE;
  }
}
