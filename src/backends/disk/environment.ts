// An open LMDB environment: reads of the latest commit of any process, and its size on disk.
import { BackendError } from "../../core/errors.ts";
import type { DiskKey } from "./layout/disk-key.ts";
import { type Lmdb, type LmdbStore, openStore, type ReadTransaction, type StoreSettings } from "./lmdb.ts";

export interface Range {
  readonly start: Buffer;
  readonly end: Buffer;
}

export interface Row {
  readonly key: Buffer;
  /** A copy of the value, or of its first bytes. */
  readonly value: Buffer;
  /** Of the whole value. */
  readonly size: number;
}

/** Most bytes copied at once: copying blocks the event loop. */
export const MOST_BYTES_AT_ONCE = 4 * 1024 ** 2;

export class Environment {
  readonly path: string;
  /** Whether a commit waits until it is on disk. */
  readonly isSynced: boolean;
  readonly store: LmdbStore;
  /** Used by every read; a read renews it after it was reset. */
  readonly #transaction: ReadTransaction;
  readonly #reading: { readonly transaction: ReadTransaction };
  readonly #end: (address: number) => void;
  #isClosed = false;

  constructor(lmdb: Lmdb, settings: StoreSettings) {
    this.path = settings.path;
    this.isSynced = settings.isSynced;
    this.store = openStore(lmdb, settings);
    this.#transaction = this.store.useReadTransaction();
    this.#reading = { transaction: this.#transaction };
    this.#end = lmdb.nativeAddon.resetTxn;
    this.#end(this.#transaction.address);
  }

  /** The value under a key as of the latest commit; a copy. */
  read(key: DiskKey): Buffer | undefined {
    this.#open();
    try {
      return this.#get(key);
    } finally {
      this.#end(this.#transaction.address);
    }
  }

  /** The first `most` bytes of a value as of the latest commit, and its size. */
  head(key: DiskKey, most: number): Omit<Row, "key"> | undefined {
    this.#open();
    try {
      const value = this.#get(key, most);
      return value && { value, size: this.store.lastSize };
    } finally {
      this.#end(this.#transaction.address);
    }
  }

  /** Applies `inspect` to the value under a key as of the latest commit; the bytes are invalid afterwards. */
  inspect<T>(key: DiskKey, inspect: (bytes: Uint8Array) => T): T | undefined {
    this.#open();
    try {
      const shared = this.store.getBinaryFast(key, this.#reading);
      return shared === undefined ? undefined : inspect(shared);
    } finally {
      this.#end(this.#transaction.address);
    }
  }

  /** As `inspect`, within a snapshot. `size`: of the value, which may be shorter than the bytes. */
  inspectWithin<T>(key: DiskKey, inspect: (bytes: Uint8Array, size: number) => T): T | undefined {
    const shared = this.store.getBinaryFast(key, this.#reading);
    return shared === undefined ? undefined : inspect(shared, this.store.lastSize);
  }

  /** Several reads of the same commit. */
  snapshot<T>(work: (get: (key: DiskKey) => Buffer | undefined) => T): T {
    this.#open();
    try {
      return work((key) => this.#get(key));
    } finally {
      // An open transaction would keep replaced pages from being reused, in all processes.
      this.#end(this.#transaction.address);
    }
  }

  /** The first `limit` keys of a range, or the first after `from`. */
  keys({ start, end }: Range, limit: number, from?: Buffer): readonly Buffer[] {
    return this.snapshot(() => this.#keys(start, end, limit, from));
  }

  /** As `keys`, with the first `most` bytes of their values; fewer keys if those are large. */
  rows(range: Range, limit: number, from?: Buffer, most?: number): readonly Row[] {
    return this.snapshot(() => this.rowsWithin(range, limit, from, most));
  }

  /** As `rows`, within a snapshot. */
  rowsWithin({ start, end }: Range, limit: number, from?: Buffer, most?: number): readonly Row[] {
    const rows: Row[] = [];
    let bytes = 0;
    for (const key of this.#keys(start, end, limit, from)) {
      const value = this.#get(key, most);
      rows.push({
        key,
        value: value ?? Buffer.alloc(0),
        size: value === undefined ? 0 : this.store.lastSize,
      });
      bytes += value?.length ?? 0;
      if (bytes >= MOST_BYTES_AT_ONCE) break;
    }
    return rows;
  }

  /** The key `places` after `from`, or after the beginning of the range. */
  keyAfter({ start, end }: Range, places: number, from: Buffer | undefined): Buffer | undefined {
    return this.snapshot(() => {
      const transaction = this.#transaction;
      const [key] = this.store.getKeys({ transaction, start: from ?? start, end, offset: places, limit: 1 });
      return key;
    });
  }

  /** Bytes of all pages in use. */
  get usedBytes(): number {
    const stat = this.store.env.stat();
    return (stat.treeBranchPageCount + stat.treeLeafPageCount + stat.overflowPages) * stat.pageSize;
  }

  /** Bytes of the file, including free pages. */
  get fileBytes(): number {
    const { lastPageNumber } = this.store.env.info();
    return (lastPageNumber + 1) * this.store.env.stat().pageSize;
  }

  get isEmpty(): boolean {
    return this.store.env.stat().entryCount === 0;
  }

  get readers(): number {
    return this.store.env.info().numReaders;
  }

  /** Frees the reader slots of killed processes, whose pages could otherwise not be reused. */
  checkReaders(): void {
    this.store.readerCheck();
  }

  /** Call it only while nothing is being read or committed. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#transaction.done();
    await this.store.close();
  }

  #open(): void {
    if (this.#isClosed) throw new BackendError("STORE_FAILED", "the store on disk is closed");
  }

  #get(key: DiskKey, most = Number.POSITIVE_INFINITY): Buffer | undefined {
    const shared = this.store.getBinaryFast(key, this.#reading);
    if (shared === undefined) return undefined;
    const size = Math.min(most, this.store.lastSize);
    const own = Buffer.allocUnsafe(size);
    own.set(shared.subarray(0, size));
    return own;
  }

  #keys(start: Buffer, end: Buffer, limit: number, from: Buffer | undefined): Buffer[] {
    const transaction = this.#transaction;
    const options = from === undefined ? { start } : { start: from, exclusiveStart: true };
    return [...this.store.getKeys({ transaction, ...options, end, limit })];
  }
}
