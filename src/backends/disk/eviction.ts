// Makes room: the nearer the store is to its bound, the more of the oldest records leave with every commit.
//
// Pages are what counts, but a page is free only when all on it is gone, and what leaves lies scattered. So it is not
// removed until the pages are few enough, which would empty the store, but in proportion to what is added: about as much
// from 98 of 100 parts on, more above.

import type { Environment } from "./environment.ts";
import type { DiskKey } from "./layout/disk-key.ts";
import { byAge } from "./layout/index-row.ts";
import { ChangeOperation } from "./operation.ts";
import { type RowRemoval, removalBy } from "./row-removal.ts";

/** From here on something leaves. */
const BEGINS = 0.9;
/** How much leaves for what is added, when the bound is reached. */
const AT_BOUND = 1.25;
const MOST_PROPORTION = 4;
/** How many leave in one commit at most. */
const MOST_AT_ONCE = 500;
/** A commit is kept short: others wait for it. */
const MOST_BYTES_AT_ONCE = 8 * 1024 ** 2;
const ROWS_A_LOOK = 64;
/** What a record takes besides its bytes: its place on the page and its rows. */
const OVERHEAD_BYTES = 120;

export interface DiskEvictionOptions {
  readonly maxBytes: number;
  /** Told of every entry that left. */
  evicted(key: string): void;
}

export class DiskEviction {
  readonly #environment: Environment;
  readonly #options: DiskEvictionOptions;
  /** Bytes that still have to leave: for a large value more than one commit removes. */
  #owed = 0;

  constructor(environment: Environment, options: DiskEvictionOptions) {
    this.#environment = environment;
    this.#options = options;
  }

  /** How much one commit may add: all of it is weighed against what was there before. */
  get mostAtOnce(): number {
    return Math.min(MOST_BYTES_AT_ONCE, this.#options.maxBytes / 16);
  }

  /** Whether more has to leave than the last commit removed. */
  get isOwed(): boolean {
    return this.#owed > 0;
  }

  /** What has to leave for so many bytes, as seen in a snapshot; nothing of what is in use. */
  make(
    bytes: number,
    isInUse: (key: string) => boolean,
    get: (key: DiskKey) => Buffer | undefined,
  ): readonly ChangeOperation[] {
    const { maxBytes } = this.#options;
    const fullness = (this.#environment.usedBytes + bytes) / maxBytes;
    const proportion = Math.min(((fullness - BEGINS) / (1 - BEGINS)) * AT_BOUND, MOST_PROPORTION);
    if (proportion <= 0) this.#owed = 0;
    else this.#owed = Math.min(this.#owed + bytes * proportion, maxBytes / 2);
    return this.#owed > 0 ? this.#leaving(isInUse, get) : [];
  }

  #leaving(
    isInUse: (key: string) => boolean,
    get: (key: DiskKey) => Buffer | undefined,
  ): readonly ChangeOperation[] {
    const leaving: ChangeOperation[] = [];
    let from: Buffer | undefined;
    while (this.#owed > 0 && leaving.length < MOST_AT_ONCE) {
      const rows = this.#environment.rowsWithin(byAge(), ROWS_A_LOOK, from);
      if (rows.length === 0) this.#owed = 0;
      from = rows.at(-1)?.key;
      for (const row of rows) {
        if (this.#owed <= 0) break;
        const bytes = get(row.value);
        const removal = removalBy(row, bytes);
        if (removal.key !== undefined && isInUse(removal.key)) continue;
        const freed = removal.key === undefined ? 0 : (bytes?.length ?? 0);
        this.#owed -= row.key.length + row.value.length + freed + OVERHEAD_BYTES;
        leaving.push(this.#operation(removal));
      }
    }
    return leaving;
  }

  #operation({ change, key, facts }: RowRemoval): ChangeOperation {
    return new ChangeOperation(key, change, (isRemoved) => {
      if (isRemoved && key !== undefined && facts?.leavesLast === false) this.#options.evicted(key);
    });
  }
}
