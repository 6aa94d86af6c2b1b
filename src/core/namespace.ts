// The contract between the cache object and one namespace of a store: synchronous in memory, promises in shared stores.
import type { Backend, Restriction, ScanPosition, Usage } from "./backend.ts";
import type { BreakerState, CircuitBreaker } from "./breaker.ts";
import type { ChangeLog } from "./change-log.ts";
import type { Beginning } from "./codec.ts";
import type { Counters } from "./counters.ts";
import type { OwnRecords } from "./own-records.ts";
import type { StoreRecord, Token } from "./record.ts";

export type MaybePromise<T> = T | Promise<T>;

/** How a value is stored. */
export interface EntryOptions {
  readonly ttlMs: number;
  /** How long after expiry getOrSet may still return it. */
  readonly staleMs: number;
  readonly tags: readonly string[];
}

/** A live value, fresh or expired but within its stale window. */
export interface Found {
  readonly value: unknown;
  readonly fresh: boolean;
  /** How long ago it expired, in milliseconds; 0 while fresh. */
  readonly expiredForMs: number;
  /** Differs from that of other entries which the key has had; absent where it is not needed. */
  readonly id?: Token | number;
  /** The record it was read from, in a shared store. */
  readonly record?: StoreRecord;
}

/** A live entry without its value. */
export interface Inspection {
  readonly key: string;
  /** Milliseconds left; Infinity when it never expires. */
  readonly ttlMs: number;
  /** Since it was stored; undefined where the store does not record it. */
  readonly ageMs?: number;
  readonly tags: readonly string[];
  readonly bytes: number;
  /** False: expired, and kept as a stale value for `staleMs` more. */
  readonly fresh: boolean;
  /** How long it may be served stale after its ttl, or from now on if it has expired. */
  readonly staleMs: number;
}

/** A live entry with its value. */
export interface Examination extends Inspection {
  readonly value: unknown;
}

/** A live entry with the beginning of its value. */
export interface Preview extends Inspection {
  /** Undefined: nothing of it can be read, for the reason in `unread`. */
  readonly beginning: Beginning | undefined;
  readonly unread?: string;
  /** Bytes of the value that were read, and that it has. */
  readonly read: number;
  readonly of: number;
}

/** An entry, whether or not it may be served. */
export interface SightedEntry {
  readonly fresh: boolean;
  /** Milliseconds left; Infinity when it never expires. */
  readonly ttlMs: number;
  readonly expiredForMs: number;
  /** How much longer it may be served stale, once it has expired. */
  readonly staleMs: number;
  readonly tags: readonly string[];
  readonly id: Token | number;
  /** What has invalidated it; undefined: it is live. */
  readonly invalidatedBy?: Invalidation;
}

/** What a key holds. */
export interface Sighting {
  /** Undefined: nothing that has been stored is left. */
  readonly entry: SightedEntry | undefined;
  /** Where this process itself has a fresh copy that it may serve. */
  readonly tier: "memory" | "near" | undefined;
  /** Whether a load holds the key's lease, here or in another process. */
  readonly isLeased: boolean;
}

/** What has made an entry dead: tags, or the namespace or one above it as a whole. */
export interface Invalidation {
  readonly tags: readonly string[];
  readonly isCleared: boolean;
}

export interface EntryScanOptions extends ScanPosition {
  readonly signal?: AbortSignal | undefined;
  /** Also entries that have expired and are kept as stale values. Default: false. */
  readonly stale?: boolean;
}

/** Permission to store a load's result, revoked by any write or invalidation that affects it. */
export interface Ticket {
  /** Stores the value unless the permission was revoked; returns whether it did. */
  commit(value: unknown, options: EntryOptions): MaybePromise<boolean>;
  /** The load has ended without a value. Gives up the permission; resolves when others may know. Never rejects. */
  abandon(): MaybePromise<void>;
  /** Whether a change made by another process would have been noticed by now; absent where no other process can make one. */
  noticesChanges?(): boolean;
  /**
   * Whether tags that the load named itself have not been invalidated since it began; asks the store. Absent where no
   * other process can invalidate them.
   */
  areCurrent?(tags: readonly string[]): Promise<boolean>;
}

/**
 * Whether to load: `found` is a value stored meanwhile; otherwise load now, and store the result only with a ticket.
 * `stale`: what the load replaces, live when the load was admitted, so that the load may return it.
 */
export type Admission =
  | { readonly found: Found; readonly ticket?: undefined; readonly stale?: undefined }
  | {
      readonly found?: undefined;
      readonly ticket: Ticket | undefined;
      readonly stale?: Found | undefined;
    };

export interface AdmissionOptions {
  /** As far as known before the load runs. */
  readonly entry: EntryOptions;
  /** Whether the load may name more tags. */
  readonly lateTags: boolean;
  /** What `find` has just returned: saves a shared store a round trip. */
  readonly seen: Found | undefined;
  /** When the load began, as returned by `changes.begin()`. */
  readonly since: number;
  /** Wait for another process's load. */
  readonly lock: boolean;
  /** Load even though a fresh value is there. */
  readonly force: boolean;
  /** Other processes wait for this load no longer than this. */
  readonly limitMs: number;
  /** Aborts when the cache disconnects. */
  readonly signal: AbortSignal;
}

export type NamespaceUsage = Usage;

/** Called synchronously before the caller's promise settles; saves one promise per write. */
export interface WriteObserver {
  written(key: string, tags: readonly string[]): void;
  /** Returns the error that the caller gets. */
  notWritten(error: unknown): Error;
}

/** The callback of a read: exactly one of its methods is called, once. */
export interface ReadCallback<T> {
  answered(result: T): void;
  failed(error: unknown): void;
}

export interface Namespace {
  /** This namespace's counters, shared by all processes. */
  readonly counters: Counters;
  /** Other records of the library in this namespace, shared by all processes. */
  readonly records: OwnRecords;
  /** Changes made by this process or pushed to it. */
  readonly changes: ChangeLog;
  /** A synchronous hit, or undefined: then call `get`. The value is the caller's own copy. */
  peek(key: string): unknown;
  /** With a callback, called now or later: on this hot path a promise would be too expensive. */
  get(key: string, callback: ReadCallback<unknown>): void;
  getMany(keys: readonly string[]): MaybePromise<Map<string, unknown>>;
  /** Returns undefined if stored synchronously; otherwise a promise, and `observer` is notified of the outcome. */
  set(key: string, value: unknown, options: EntryOptions, observer?: WriteObserver): MaybePromise<void>;
  setMany(entries: readonly (readonly [string, unknown])[], options: EntryOptions): MaybePromise<void>;
  /** Returns how many of them were live. `unread`: large values are not transferred, which takes one more round trip. */
  delete(keys: readonly string[], unread?: boolean): MaybePromise<number>;
  inspect(key: string): MaybePromise<Inspection | undefined>;
  /** As `inspect`, also of an entry that is kept as a stale value, and with the value. */
  examine(key: string): MaybePromise<Examination | undefined>;
  /** As `examine`, with no more than the first `most` bytes of the value. */
  preview(key: string, most: number): MaybePromise<Preview | undefined>;
  /** Looks at a key without using, keeping or reclaiming anything. */
  sight(key: string): MaybePromise<Sighting>;
  /** Live entries in batches; a key may come twice. */
  scan(options?: EntryScanOptions): AsyncIterable<readonly Inspection[]>;
  invalidateTags(tags: readonly string[]): MaybePromise<void>;
  /** Removes the entries whose keys match, and revokes loads of such keys. Returns how many entries were live. */
  invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): MaybePromise<number>;
  clear(): MaybePromise<void>;
  usage(exact: boolean, signal?: AbortSignal): MaybePromise<NamespaceUsage>;

  /** The value under a key, fresh or stale, for getOrSet. */
  find(key: string): MaybePromise<Found | undefined>;
  /** As `find`, with a callback; absent where a missed `peek` is already conclusive. */
  seek?(key: string, callback: ReadCallback<Found | undefined>): void;
  admit(key: string, options: AdmissionOptions): MaybePromise<Admission>;
  /** The value for another caller: a copy, or the value itself where values are shared. */
  own(value: unknown): unknown;
  /** Callers get frozen values, also from their own loads. Default: no. */
  readonly freezes?: boolean;

  child(name: string, face?: NamespaceFace): Namespace;
  /** Calls `use` with the namespace that takes the place of this one, which it does without waiting for calls. Default: none does. */
  whenReady?(use: (namespace: Namespace) => void): void;
}

/** A namespace as caches know it, before it was opened. */
export interface NamespaceFace {
  readonly changes: ChangeLog;
  /** By which observers know it. */
  readonly self: Namespace;
}

/** Receives the events of a store. */
export interface StoreObserver {
  /** The namespace whose evictions it observes; undefined: all. */
  readonly namespace?: Namespace;
  /** A failure that no caller sees. */
  failed(error: Error): void;
  /** Whether anybody listens for failures. Default: no. */
  hearsErrors?(): boolean;
  breakerChanged(state: BreakerState): void;
  evicted(namespace: Namespace, key: string): void;
}

/** A store opened for use; several cache objects may share one. */
export interface Store {
  readonly backend: Backend;
  readonly observers: Set<StoreObserver>;
  /** Absent where nothing can fail. */
  readonly breaker: CircuitBreaker | undefined;
  namespace(prefix: string): Namespace;
  connect(): Promise<void>;
  /** Delivers what the store has not acknowledged yet, as far as it answers. Absent where nothing can be left. */
  settle?(): Promise<void>;
  /** From then on no call opens the store but `connect`, and those of a cache that has joined since. */
  disconnect(): Promise<void>;
  ping(): Promise<void>;
  /**
   * See Backend.restrictions. Rejects after what is left of operation_timeout after `spentMs`. Absent where everything is
   * allowed.
   */
  restrictions?(spentMs?: number): Promise<readonly Restriction[]>;
  /** The used share of the store's limit, 0 to 1; 0 where it has no limit or the share is not known yet. */
  memoryUsage(): number;
  /**
   * As `memoryUsage`, but waits for the first reading, within what is left of operation_timeout after `spentMs`. Never
   * rejects. Absent where the share is always known.
   */
  firstMemoryUsage?(spentMs: number): Promise<number>;
}

/** Usage as counted by a full scan. */
export async function countedUsage(batches: AsyncIterable<readonly Inspection[]>): Promise<NamespaceUsage> {
  let keys = 0;
  let bytes = 0;
  for await (const batch of batches) {
    keys += batch.length;
    for (const item of batch) bytes += item.bytes;
  }
  return { keys, bytes, approximate: false };
}
