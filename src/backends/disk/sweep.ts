// Removes what has ended, a little at a time, while the store is used; a process that does not use it rests.
import type { Clock, Timer } from "../../core/clock.ts";
import { removeRecord, removeRow } from "./change.ts";
import type { Committer } from "./committer.ts";
import type { Environment, Row } from "./environment.ts";
import { endedBy, isRowOf } from "./index-row.ts";
import { ChangeOperation } from "./operation.ts";
import { storedKey } from "./stored-key.ts";
import { factsOf } from "./stored-record.ts";

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
  #timer: Timer | undefined;
  #isUsed = false;
  #looks = 0;

  constructor(environment: Environment, committer: Committer, clock: Clock, limitMs: number) {
    this.#environment = environment;
    this.#committer = committer;
    this.#clock = clock;
    this.#limitMs = limitMs;
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
      const removed = this.#committer.isStuck ? 0 : this.#look();
      if (removed === MOST_AT_ONCE) this.#isUsed = true;
      this.#later(removed === MOST_AT_ONCE ? AGAIN_MS : EVERY_MS);
    });
  }

  #look(): number {
    if (this.#looks++ % LOOKS_A_CHECK === 0) this.#environment.checkReaders();
    const rows = this.#environment.rows(endedBy(this.#clock.now()), MOST_AT_ONCE);
    for (const row of rows) this.#committer.add(this.#removal(row), this.#limitMs);
    return rows.length;
  }

  #removal(row: Row): ChangeOperation {
    const bytes = this.#environment.read(row.value);
    const facts = bytes === undefined ? undefined : factsOf(bytes);
    if (bytes === undefined || facts === undefined || !isRowOf(row.key, facts)) {
      return new ChangeOperation(undefined, removeRow(row.key));
    }
    return new ChangeOperation(storedKey(row.value, bytes), removeRecord(row.value, facts));
  }
}
