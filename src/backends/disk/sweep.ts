// Removes expired records and stale rows, and moves rows that come too early, in small steps while the process uses the store.
import type { Clock, Timer } from "../../core/clock.ts";
import { removalFor } from "./change.ts";
import type { Committer } from "./committer.ts";
import { type Environment, MOST_BYTES_AT_ONCE } from "./environment.ts";
import { expiredBy } from "./layout/index-row.ts";
import { ChangeOperation } from "./operation.ts";
import { StaleRows } from "./stale-rows.ts";

/** Average interval, jittered per process so that usually only one finds the same records. */
const EVERY_MS = 1_000;
/** Interval while there is more to remove. */
const AGAIN_MS = 50;
const MOST_AT_ONCE = 200;
/** Sweeps per check for reader slots of killed processes. */
const SWEEPS_PER_READER_CHECK = 10;

export class Sweep {
  readonly #environment: Environment;
  readonly #committer: Committer;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #staleRows: StaleRows;
  #timer: Timer | undefined;
  #isUsed = false;
  #sweeps = 0;

  constructor(environment: Environment, committer: Committer, clock: Clock, limitMs: number) {
    this.#environment = environment;
    this.#committer = committer;
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#staleRows = new StaleRows(environment, committer);
  }

  /** Call it whenever the store is used. */
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
      // While changes fail, it would find the same records over and over.
      const isMore = !this.#committer.isStuck && this.#trySweep() && !this.#committer.isReadOnly;
      if (isMore) this.#isUsed = true;
      this.#later(isMore ? AGAIN_MS : EVERY_MS);
    });
  }

  /** As `#sweep`. A damaged store cannot be read: thrown in a timer, its error would end the process. Calls report it. */
  #trySweep(): boolean {
    try {
      return this.#sweep();
    } catch {
      return false;
    }
  }

  /** Returns whether there is more to remove. */
  #sweep(): boolean {
    if (this.#sweeps++ % SWEEPS_PER_READER_CHECK === 0) this.#environment.checkReaders();
    const now = this.#clock.now();
    const rows = this.#environment.rows(expiredBy(now), MOST_AT_ONCE);
    let bytesRead = 0;
    for (const row of rows) {
      if (bytesRead >= MOST_BYTES_AT_ONCE) return true;
      const bytes = this.#environment.read(row.value);
      bytesRead += bytes?.length ?? 0;
      const { change, key } = removalFor(row, bytes, ({ expiresAt }) => expiresAt > now);
      this.#committer.add(new ChangeOperation(key, change), this.#limitMs);
    }
    return this.#staleRows.remove(now, this.#limitMs) || rows.length === MOST_AT_ONCE;
  }
}
