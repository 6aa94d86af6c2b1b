// Detects that the folder of an open store was removed or replaced. Processes that still have the old files open would
// keep serving entries that others invalidate.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { ConnectionError } from "../../../core/errors.ts";

/** At most this often a read checks the folder. */
const CHECK_EVERY_MS = 500;

export class FolderWatch {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #file: string;
  #checkedAt: number;
  #isGone = false;

  /** Call it once the store in the folder is open. */
  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#file = fileIn(path);
    this.#checkedAt = clock.coarse();
  }

  /** Checks now; for commits. */
  isGone(): boolean {
    this.#checkedAt = this.#clock.coarse();
    this.#isGone ||= fileIn(this.#path) !== this.#file;
    return this.#isGone;
  }

  /** As `isGone`, but checks at most twice a second; for reads. */
  wasGone(): boolean {
    return this.#isGone || (this.#clock.coarse() - this.#checkedAt >= CHECK_EVERY_MS && this.isGone());
  }

  /** Throws ConnectionError, so that uncommitted invalidations are repeated once the other store is open. */
  requirePresent(): void {
    if (!this.isGone()) return;
    throw new ConnectionError(`the store in ${this.#path} was removed or replaced while it was in use`, {
      hint: "The next call opens the store that is there now. Stop all processes that use a store before removing its folder.",
    });
  }
}

/** While a removed file is still open, its inode number is not reused. */
function fileIn(path: string): string {
  const stat = statSync(join(path, "data.mdb"), { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}
