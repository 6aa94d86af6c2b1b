// Loads the package lmdb on first use, and types the part of its API that is used here.
import { MissingPeerError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { requirePeerVersion } from "../../core/peer-package.ts";
import { type DiskKey, keyEncoder } from "./layout/disk-key.ts";

export interface ReadTransaction {
  readonly address: number;
  done(): void;
}

/** Page counts of a database. */
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
  /** Length of the last value read. */
  readonly lastSize: number;
  readonly env: {
    stat(): TreeStat;
    info(): { readonly lastPageNumber: number; readonly numReaders: number; readonly maxReaders: number };
  };
  /** The next read overwrites the returned bytes. */
  getBinaryFast(key: DiskKey, options: { readonly transaction: ReadTransaction }): Uint8Array | undefined;
  getKeys(options: RangeOptions): Iterable<Buffer>;
  useReadTransaction(): ReadTransaction;
  put(key: DiskKey, value: Uint8Array, version: number): Promise<boolean>;
  remove(key: DiskKey): Promise<boolean>;
  /** `null`: if the key does not exist. */
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

/** Throws MissingPeerError if the package is not installed or does not load. `load` is for tests. */
export async function loadLmdb(load: () => Promise<unknown> = () => import("lmdb")): Promise<Lmdb> {
  let lmdb: Lmdb;
  try {
    // The types of the package lack what is used here.
    lmdb = (await load()) as Lmdb;
  } catch (cause) {
    if (isAbsence(cause)) throw new MissingPeerError("lmdb", "DiskBackend", { cause });
    throw new MissingPeerError("lmdb", "DiskBackend", {
      cause,
      failure: toError(cause).message,
      hint: "It finds its binary next to its own files: keep it out of a bundle (external) and install it where the bundle runs.",
    });
  }
  requirePeerVersion("lmdb", "DiskBackend");
  return lmdb;
}

const isAbsence = (error: unknown): boolean =>
  ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes((error as NodeJS.ErrnoException).code ?? "");

export interface StoreSettings {
  readonly path: string;
  /** Whether a commit waits until it is on disk. */
  readonly isSynced: boolean;
  readonly mapBytes: number;
}

const MAX_READERS = 1_024;
/** Accessible only to the user whose processes share the store. */
const FILE_MODE = 0o600;

/** Opens or creates an environment. Never waits for a process that is writing to it. */
export function openStore(lmdb: Lmdb, { path, isSynced, mapBytes }: StoreSettings): LmdbStore {
  const database = { keyEncoder, encoding: "binary", useVersions: true };
  const Opened = lmdb.openAsClass({
    ...database,
    path,
    noSubdir: false,
    noSync: !isSynced,
    // With it, commits would become visible before they are on disk: neither of the two durability levels.
    overlappingSync: false,
    maxReaders: MAX_READERS,
    mapSize: mapBytes,
    permissionsMode: FILE_MODE,
    // A failing commit would reject a promise of the batch that cannot be caught.
    eventTurnBatching: false,
    // The write lock must not be taken before all changes of a commit are queued.
    batchStartThreshold: Number.MAX_SAFE_INTEGER,
    // Once they are, the next change starts the commit.
    txnStartThreshold: 1,
  });
  // The constructor looks up the root database in a write transaction. It always exists, so a read transaction finds it
  // too, without the write lock, which a hung process may hold.
  class Root extends Opened {
    transactionSync(action: () => void): void {
      this.resetReadTxn();
      this.ensureReadTxn();
      action();
    }
  }
  return new Root(null, { ...database, isRoot: true, create: false });
}
