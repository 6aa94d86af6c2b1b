// Whether an open store is still the one in its folder. Whoever removes or replaces the folder leaves the processes on
// it with a store of their own: they would go on serving what others invalidate.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { ConnectionError } from "../../../core/errors.ts";

/** How long reads may go on before the folder is looked at again. */
const LOOK_EVERY_MS = 500;

export class FolderWatch {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #file: string;
  #lookedAt: number;
  #isGone = false;

  /** To be made when the store in the folder is open. */
  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#file = fileIn(path);
    this.#lookedAt = clock.coarse();
  }

  /** Looks; to be asked before a commit. */
  isGone(): boolean {
    this.#lookedAt = this.#clock.coarse();
    this.#isGone ||= fileIn(this.#path) !== this.#file;
    return this.#isGone;
  }

  /** As `isGone`, looking twice a second at most; to be asked before a read. */
  wasGone(): boolean {
    return this.#isGone || (this.#clock.coarse() - this.#lookedAt >= LOOK_EVERY_MS && this.isGone());
  }

  /** Throws ConnectionError: what cannot be committed is told of again when another store is open. */
  requirePresent(): void {
    if (!this.isGone()) return;
    throw new ConnectionError(`the store in ${this.#path} was removed or replaced while it was in use`, {
      hint: "The next call opens what is there now. Stop the processes on a store before its folder is removed.",
    });
  }
}

/** A file that is removed while it is open keeps its number, so that no other one has it. */
function fileIn(path: string): string {
  const stat = statSync(join(path, "data.mdb"), { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}
