// An opened environment of LMDB: reads from the latest commit of any process, and what it takes on disk.
import { BackendError } from "../../core/errors.ts";
import type { DiskKey } from "./layout/disk-key.ts";
import { type Lmdb, type LmdbStore, openStore, type ReadTransaction, type StoreSettings } from "./lmdb.ts";

export interface Range {
  readonly start: Buffer;
  readonly end: Buffer;
}

export interface Row {
  readonly key: Buffer;
  readonly value: Buffer;
}

/** How much is copied in one go: nothing else has its turn meanwhile. */
export const MOST_BYTES_AT_ONCE = 4 * 1024 ** 2;

export class Environment {
  readonly path: string;
  readonly store: LmdbStore;
  /** In which every read is made: begun anew by a read that finds it ended. */
  readonly #transaction: ReadTransaction;
  readonly #reading: { readonly transaction: ReadTransaction };
  readonly #end: (address: number) => void;
  #isClosed = false;

  constructor(lmdb: Lmdb, settings: StoreSettings) {
    this.path = settings.path;
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

  /** What `look` makes of the value under a key as of the latest commit; its bytes are gone afterwards. */
  look<T>(key: DiskKey, look: (bytes: Uint8Array) => T): T | undefined {
    this.#open();
    try {
      const shared = this.store.getBinaryFast(key, this.#reading);
      return shared === undefined ? undefined : look(shared);
    } finally {
      this.#end(this.#transaction.address);
    }
  }

  /** Several reads of one commit: none made in between is seen. */
  snapshot<T>(work: (get: (key: DiskKey) => Buffer | undefined) => T): T {
    this.#open();
    try {
      return work((key) => this.#get(key));
    } finally {
      // An open one would keep every page that is replaced from being used again, in all processes.
      this.#end(this.#transaction.address);
    }
  }

  /** The first `limit` keys of a range, and after `from` where that is given. */
  keys({ start, end }: Range, limit: number, from?: Buffer): readonly Buffer[] {
    return this.snapshot(() => this.#keys(start, end, limit, from));
  }

  /** As `keys`, with what lies under each; fewer where they are so large that to copy them would take long. */
  rows(range: Range, limit: number, from?: Buffer): readonly Row[] {
    return this.snapshot(() => this.rowsWithin(range, limit, from));
  }

  /** As `rows`, within a snapshot. */
  rowsWithin({ start, end }: Range, limit: number, from?: Buffer): readonly Row[] {
    const rows: Row[] = [];
    let bytes = 0;
    for (const key of this.#keys(start, end, limit, from)) {
      const value = this.#get(key) ?? Buffer.alloc(0);
      rows.push({ key, value });
      bytes += value.length;
      if (bytes >= MOST_BYTES_AT_ONCE) break;
    }
    return rows;
  }

  /** The key so many places after `from`, or after the beginning. */
  keyAfter({ start, end }: Range, places: number, from: Buffer | undefined): Buffer | undefined {
    return this.snapshot(() => {
      const transaction = this.#transaction;
      const [key] = this.store.getKeys({ transaction, start: from ?? start, end, offset: places, limit: 1 });
      return key;
    });
  }

  /** Bytes of all pages that hold something. */
  get usedBytes(): number {
    const stat = this.store.env.stat();
    return (stat.treeBranchPageCount + stat.treeLeafPageCount + stat.overflowPages) * stat.pageSize;
  }

  /** Bytes of the file, pages that can be used again included. */
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

  /** Frees the places of readers that were killed: what they were reading could not be reclaimed. */
  checkReaders(): void {
    this.store.readerCheck();
  }

  /** Nothing may be under way. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#transaction.done();
    await this.store.close();
  }

  #open(): void {
    if (this.#isClosed) throw new BackendError("STORE_FAILED", "the store on disk is closed");
  }

  #get(key: DiskKey): Buffer | undefined {
    const shared = this.store.getBinaryFast(key, this.#reading);
    if (shared === undefined) return undefined;
    const size = this.store.lastSize;
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
