// Evicts the oldest records: the closer the store is to its bound, the more are removed with every commit.
//
// The bound counts pages, but a page is free only when everything on it is gone, and evicted records are scattered.
// Evicting until enough pages are free would empty the store. So bytes are removed in proportion to the bytes added:
// about as many at 98 % of the bound, more above.

import { type RowRemoval, removalFor } from "./change.ts";
import type { Environment } from "./environment.ts";
import type { DiskKey } from "./layout/disk-key.ts";
import { byAge } from "./layout/index-row.ts";
import { ChangeOperation } from "./operation.ts";

/** The share of the bound at which eviction begins. */
const BEGINS = 0.9;
/** Bytes evicted per byte added when the bound is reached. */
const AT_BOUND = 1.25;
const MOST_PROPORTION = 4;
const MOST_AT_ONCE = 500;
/** Keeps commits short: other processes wait for the lock. */
const MOST_BYTES_AT_ONCE = 8 * 1024 ** 2;
const ROWS_PER_READ = 64;
/** Approximate bytes of a record besides its value: its place on the page and its index rows. */
const OVERHEAD_BYTES = 120;

export interface DiskEvictionOptions {
  readonly maxBytes: number;
  /** Called for every evicted entry. */
  evicted(key: string): void;
}

export class DiskEviction {
  readonly #environment: Environment;
  readonly #options: DiskEvictionOptions;
  /** Bytes still to evict: a large value may need more than one commit. */
  #backlog = 0;

  constructor(environment: Environment, options: DiskEvictionOptions) {
    this.#environment = environment;
    this.#options = options;
  }

  /** Most bytes that one commit may add: eviction is planned from the usage before it. */
  get maxBatchBytes(): number {
    return Math.min(MOST_BYTES_AT_ONCE, this.#options.maxBytes / 16);
  }

  /** Whether the last commit evicted less than needed. */
  get hasBacklog(): boolean {
    return this.#backlog > 0;
  }

  /** Plans the evictions for `bytes` added, within a snapshot; skips keys in use. */
  plan(
    bytes: number,
    isInUse: (key: string) => boolean,
    get: (key: DiskKey) => Buffer | undefined,
  ): readonly ChangeOperation[] {
    const { maxBytes } = this.#options;
    const fullness = (this.#environment.usedBytes + bytes) / maxBytes;
    const proportion = Math.min(((fullness - BEGINS) / (1 - BEGINS)) * AT_BOUND, MOST_PROPORTION);
    if (proportion <= 0) this.#backlog = 0;
    else this.#backlog = Math.min(this.#backlog + bytes * proportion, maxBytes / 2);
    return this.#backlog > 0 ? this.#evictions(isInUse, get) : [];
  }

  #evictions(
    isInUse: (key: string) => boolean,
    get: (key: DiskKey) => Buffer | undefined,
  ): readonly ChangeOperation[] {
    const evictions: ChangeOperation[] = [];
    let from: Buffer | undefined;
    while (this.#backlog > 0 && evictions.length < MOST_AT_ONCE) {
      const rows = this.#environment.rowsWithin(byAge(), ROWS_PER_READ, from);
      if (rows.length === 0) this.#backlog = 0;
      from = rows.at(-1)?.key;
      for (const row of rows) {
        if (this.#backlog <= 0) break;
        const bytes = get(row.value);
        // A record that was overwritten is younger than the row it kept.
        const removal = removalFor(row, bytes, () => true);
        if (removal.key !== undefined && isInUse(removal.key)) continue;
        if (removal.isMove !== true) {
          const freed = removal.key === undefined ? 0 : (bytes?.length ?? 0);
          this.#backlog -= row.key.length + row.value.length + freed + OVERHEAD_BYTES;
        }
        evictions.push(this.#operation(removal));
      }
    }
    return evictions;
  }

  #operation({ change, key, meta, isMove }: RowRemoval): ChangeOperation {
    return new ChangeOperation(key, change, (isMade) => {
      if (isMade && isMove !== true && key !== undefined && meta?.evictedLast === false)
        this.#options.evicted(key);
    });
  }
}
