// The package lmdb, loaded when it is first needed, and the part of it that is used.
import { MissingPeerError } from "../../core/errors.ts";
import { type DiskKey, keyEncoder } from "./layout/disk-key.ts";

export interface ReadTransaction {
  readonly address: number;
  done(): void;
}

/** What the tree of a database takes, in pages. */
export interface TreeStat {
  readonly pageSize: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
  readonly entryCount: number;
}

interface RangeOptions {
  readonly transaction: ReadTransaction;
  readonly start: DiskKey;
  readonly end: DiskKey;
  readonly exclusiveStart?: boolean;
  readonly limit: number;
  readonly offset?: number;
}

/** The root database of an environment. */
export interface LmdbStore {
  /** Length of what was read last. */
  readonly lastSize: number;
  readonly env: {
    stat(): TreeStat;
    info(): { readonly lastPageNumber: number; readonly numReaders: number; readonly maxReaders: number };
  };
  /** Bytes that the next read overwrites. */
  getBinaryFast(key: DiskKey, options: { readonly transaction: ReadTransaction }): Uint8Array | undefined;
  getKeys(options: RangeOptions): Iterable<Buffer>;
  useReadTransaction(): ReadTransaction;
  put(key: DiskKey, value: Uint8Array, version: number): Promise<boolean>;
  remove(key: DiskKey): Promise<boolean>;
  /** `null`: if there is nothing under the key. */
  ifVersion(key: DiskKey, version: number | null, action: () => void): Promise<boolean>;
  batch(action: () => void): Promise<boolean>;
  readerCheck(): number;
  close(): Promise<void>;
  resetReadTxn(): void;
  ensureReadTxn(): void;
}

type StoreClass = new (name: null, options: object) => LmdbStore;

export interface Lmdb {
  openAsClass(options: object): StoreClass;
  readonly nativeAddon: { resetTxn(address: number): void };
  readonly version: { readonly major: number; readonly minor: number; readonly patch: number };
}

/** Throws MissingPeerError where it is not installed. */
export async function loadLmdb(): Promise<Lmdb> {
  try {
    // Its own types lack what is needed here.
    return (await import("lmdb")) as unknown as Lmdb;
  } catch (error) {
    if (isAbsence(error)) throw new MissingPeerError("lmdb", "DiskBackend", { cause: error });
    throw error;
  }
}

const isAbsence = (error: unknown): boolean =>
  ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes((error as NodeJS.ErrnoException).code ?? "");

export interface StoreSettings {
  readonly path: string;
  /** Whether a commit waits until the disk has it. */
  readonly isSynced: boolean;
  readonly mapBytes: number;
}

const MAX_READERS = 1_024;
/** Nobody but the user whose processes share the store. */
const FILE_MODE = 0o600;

/** Opens an environment, and makes it where there is none. Never waits for a process that is writing to it. */
export function openStore(lmdb: Lmdb, { path, isSynced, mapBytes }: StoreSettings): LmdbStore {
  const database = { keyEncoder, encoding: "binary", useVersions: true };
  const Opened = lmdb.openAsClass({
    ...database,
    path,
    noSubdir: false,
    noSync: !isSynced,
    // Its commits become visible before they are on disk, which is neither of our two levels.
    overlappingSync: false,
    maxReaders: MAX_READERS,
    mapSize: mapBytes,
    permissionsMode: FILE_MODE,
    // A commit that fails rejects a promise of such a batch that nobody can catch.
    eventTurnBatching: false,
    // The lock is not to be taken before all changes of a commit are at hand.
    batchStartThreshold: Number.MAX_SAFE_INTEGER,
  });
  // The constructor looks the root database up in a write transaction. It is always there, a read transaction finds it
  // as well, and that needs no lock which a process that hangs may hold.
  class Root extends Opened {
    transactionSync(action: () => void): void {
      this.resetReadTxn();
      this.ensureReadTxn();
      action();
    }
  }
  return new Root(null, { ...database, isRoot: true, create: false });
}
