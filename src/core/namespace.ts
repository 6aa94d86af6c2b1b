// What the cache object asks of one namespace of a store. Memory answers at once, shared stores with promises.
import type { Backend, Usage } from "./backend.ts";
import type { BreakerState, CircuitBreaker } from "./breaker.ts";
import type { ChangeLog } from "./change-log.ts";
import type { Counters } from "./counters.ts";
import type { StoreRecord } from "./record.ts";

export type MaybePromise<T> = T | Promise<T>;

/** How a value is to be stored. */
export interface EntryOptions {
  readonly ttlMs: number;
  /** For how long after expiry getOrSet may still use it. */
  readonly staleMs: number;
  readonly tags: readonly string[];
}

/** A live value, fresh or expired but within its stale window. */
export interface Found {
  readonly value: unknown;
  readonly fresh: boolean;
  /** How long ago it expired, in milliseconds; 0 while fresh. */
  readonly expiredForMs: number;
  /** The record of a shared store it was found in. */
  readonly record?: StoreRecord;
}

/** What is known of a live entry without its value. */
export interface Inspection {
  readonly key: string;
  /** Milliseconds left; Infinity when it never expires. */
  readonly ttlMs: number;
  /** Since it was stored; undefined where the store does not keep that. */
  readonly ageMs?: number;
  readonly tags: readonly string[];
  readonly bytes: number;
}

/** The permission to store a load's result, revoked by any write or invalidation that concerns it. */
export interface Ticket {
  /** Stores unless the permission was revoked; says whether it stored. */
  commit(value: unknown, terms: EntryOptions): MaybePromise<boolean>;
  /** Gives the permission back without storing. */
  abandon(): void;
  /** Whether a change made elsewhere would have been noticed by now; absent where nothing is changed elsewhere. */
  isTold?(): boolean;
  /**
   * Whether tags that only the load could name are those it began with; absent where nothing is changed elsewhere.
   * Asks the store.
   */
  areCurrent?(tags: readonly string[]): Promise<boolean>;
}

/** The answer to asking for a load: somebody stored the value meanwhile, or load now. Without a ticket nothing is stored. */
export type Admission =
  | { readonly found: Found; readonly ticket?: undefined }
  | { readonly found?: undefined; readonly ticket: Ticket | undefined };

export interface AdmissionOptions {
  /** As far as they are known before the load runs. */
  readonly entry: EntryOptions;
  /** Whether the load may name more tags. */
  readonly lateTags: boolean;
  /** What `find` has just returned: spares a shared store a round trip. */
  readonly seen: Found | undefined;
  /** When the load began, as `changes.begin()` said. */
  readonly since: number;
  /** Wait for another process's load. */
  readonly lock: boolean;
  /** Load even though a fresh value is there. */
  readonly force: boolean;
}

export type NamespaceUsage = Usage;

/** Told how a write ended just before its caller is: a promise between the two would weigh. */
export interface WriteObserver {
  written(key: string, tags: readonly string[]): void;
  /** Returns the error that the caller gets. */
  notWritten(error: unknown): Error;
}

/** Who has asked for something. Told one of the two, once. */
export interface ReadCallback<T> {
  answered(result: T): void;
  failed(error: unknown): void;
}

export interface Namespace {
  /** Where this namespace's figures are added up. */
  readonly counters: Counters;
  /** Changes made or learnt of in this process. */
  readonly changes: ChangeLog;
  /** A hit at once, or undefined: then `get` knows. The value is the caller's own. */
  peek(key: string): unknown;
  /** Tells the value, at once or later: so often asked that a promise would weigh. */
  get(key: string, asker: ReadCallback<unknown>): void;
  getMany(keys: readonly string[]): MaybePromise<Map<string, unknown>>;
  /** Returns nothing where it is stored at once, and a promise where `told` is told how it ended. */
  set(key: string, value: unknown, terms: EntryOptions, told?: WriteObserver): MaybePromise<void>;
  setMany(entries: readonly (readonly [string, unknown])[], terms: EntryOptions): MaybePromise<void>;
  /** How many of them were live. */
  delete(keys: readonly string[]): MaybePromise<number>;
  inspect(key: string): MaybePromise<Inspection | undefined>;
  /** Live entries in batches; a key may come twice. */
  scan(signal?: AbortSignal): AsyncIterable<readonly Inspection[]>;
  invalidateTags(tags: readonly string[]): MaybePromise<void>;
  /** Removes the entries whose keys match, and revokes loads of such keys. How many entries were live. */
  invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): MaybePromise<number>;
  clear(): MaybePromise<void>;
  usage(exact: boolean, signal?: AbortSignal): MaybePromise<NamespaceUsage>;

  /** The value under a key, fresh or stale, for getOrSet. */
  find(key: string): MaybePromise<Found | undefined>;
  /** As `find`, telling it; absent where `peek` has already said all. */
  seek?(key: string, asker: ReadCallback<Found | undefined>): void;
  admit(key: string, options: AdmissionOptions): MaybePromise<Admission>;
  /** The value for one more caller: a copy, or itself where values are shared. */
  own(value: unknown): unknown;

  child(name: string): Namespace;
}

/** Who is told what happens in a store without being asked. */
export interface StoreObserver {
  /** Whose evictions it wants to hear of; undefined: everybody's. */
  readonly space?: Namespace;
  /** A failure that no caller sees. */
  failed(error: Error): void;
  breakerChanged(state: BreakerState): void;
  evicted(space: Namespace, key: string): void;
}

/** A store opened for use; several cache objects may share one. */
export interface Store {
  readonly backend: Backend;
  readonly observers: Set<StoreObserver>;
  /** Absent where nothing can fail. */
  readonly breaker: CircuitBreaker | undefined;
  namespace(prefix: string): Namespace;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  ping(): Promise<void>;
  /** Share of the store's own bound that is in use, 0 to 1, as far as it is known; 0 where it has none. */
  fill(): number;
  /**
   * As `fill`, but waits until it is known for the first time; not when more than operation_timeout would be over, of
   * which `spentMs` are spent. Never rejects. Absent where it is always known.
   */
  firstFill?(spentMs: number): Promise<number>;
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
