// The contract of a shared store. Stamps, leases, expiry rules, breaker and deadlines are built on it in core,
// so a backend only moves records: implement this and every feature of xcache works on it.
import type { Clock } from "./clock.ts";
import type { StoreRecord, Token } from "./record.ts";

/** What a store can do. The core adapts; an operation that needs a missing one throws UnsupportedError. */
export interface Capabilities {
  /** Other processes see the same records, so loads are single-flight across them. */
  readonly shared: boolean;
  /** Keys can be listed. */
  readonly scan: boolean;
  /**
   * In what steps the store itself counts lifetimes, in milliseconds. It keeps a record for at least its lifetime, and the
   * core checks the exact expiry of an entry when it is read.
   */
  readonly ttlResolutionMs: number;
  /** An acknowledged write may be lost in a failover; the backend then calls `onServer`. */
  readonly replicated?: boolean;
  /** The store applies this process's changes to the library's own records of a namespace in the order they were sent. */
  readonly ordered?: boolean;
  /**
   * False: what was sent over a lost connection may take effect after what is sent over the next one. Pending invalidations
   * are then delivered a second time. Default: true.
   */
  readonly fenced?: boolean;
  /** Reads leave at the end of the event-loop turn they are asked for in, never before: calls of one turn may share them. */
  readonly readsAtEndOfTurn?: boolean;
  /**
   * Payloads may be parts of larger memory, with `bytes` as a view that is made when it is read: a copy that
   * `structuredClone` or a spread makes of a record would have no `bytes`, but all of the memory. Default: false.
   */
  readonly takesPayloadSlices?: boolean;
}

/** Where a replicated server stands in the history of writes. */
export interface ReplicationHistory {
  /** Names the history; a server that is promoted begins a new one. */
  readonly id: string;
  /** How far it has come. */
  readonly offset: number;
  /** The history that its own continues, up to `formerEnd`. */
  readonly formerId?: string;
  /** The first offset of that history that it does not have. */
  readonly formerEnd?: number;
}

/** A server to which a connection was just established. */
export interface ConnectedServer {
  /** Suffix that places one of the library's own keys on this server. */
  readonly anchor: string;
  /** Another one, in case that keys with the first move to another server; absent where keys never move. */
  readonly spareAnchor?: string | undefined;
  /** Changes whenever the server process starts. */
  readonly runId: string;
  /**
   * A server process may become a replica, take over the data of another one, and be promoted again: then its run id is
   * the same and its history is not. Absent where the store does not report it.
   */
  readonly history?: ReplicationHistory | undefined;
  /** When its process started, in the store's time; at most a second early. */
  readonly startedAt: number;
  /** When the server at this anchor last answered this process, by the local clock; 0: never. */
  readonly lastProvenAt: number;
  /** Its clock was set back, and entries that have expired would be fresh again: the latest time that it had reported. */
  readonly setBackFrom?: number;
  /** Commands on the new connection, which nothing else uses yet. */
  readonly records: Pick<Backend, "read" | "write" | "take" | "now">;
  /** Whether a key is on this server. */
  owns(key: string): boolean;
}

/** A store's time that runs back by less than this is bridged by the core: expiry is judged by the latest time there was. */
export const BRIDGED_STEP_MS = 30_000;

/** What the core provides to a backend when it is opened. */
export interface BackendHost {
  readonly clock: Clock;
  /** Deadline of a store operation, in milliseconds; the core enforces it, a client may use it to drop sockets. */
  readonly operationTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
  /** Whether there is a near tier: then most reads are watched. */
  readonly keepsEntries?: boolean;
  /** Reports an error that no caller is waiting for, such as a lost connection. */
  report(error: Error): void;
  /** Called when an entry was evicted. */
  evicted(key: string): void;
  /** Called on every (re)connect with the server's identity; no command may be sent until it resolves. */
  onServer(server: ConnectedServer): Promise<void>;
  /** Called whenever a connection is ready: closes the circuit breaker and delivers pending invalidations. */
  connected?(): void;
}

export interface KeyedRecord {
  readonly key: string;
  readonly record: StoreRecord;
  /** How long the store keeps it from now, in milliseconds; Infinity: no expiry. */
  readonly lifetimeMs: number;
}

/** `won`: the record was replaced. Otherwise `current` is what the store holds. */
export type SwapResult =
  | { readonly won: true }
  | { readonly won: false; readonly current: StoreRecord | undefined };

export interface ScanItem {
  readonly key: string;
  readonly record: StoreRecord;
  /** Bytes this key uses in the store, as far as the store reports it. */
  readonly bytes: number;
}

/** A record that was read in part. */
export interface RecordHead {
  /** Complete but for the payload of an entry, or of the one behind a lease: that is only its beginning. */
  readonly record: StoreRecord;
  /** How long that payload is. */
  readonly payloadBytes: number;
  /** Why nothing of the payload can be read without reading all of it. */
  readonly unread?: string;
}

/** For a scan that can be continued later; a store that cannot ignores both. */
export interface ScanPosition {
  /** Continues after a position of an earlier scan of the same prefix. Keys that were there all the time are not missed. */
  readonly from?: string;
  /** Called before a batch is handed out, with the position after it; not for the last one. */
  readonly at?: (position: string) => void;
}

export interface ScanOptions extends ScanPosition {
  /** Stops the scan when it aborts. */
  readonly signal?: AbortSignal;
}

export interface PoolState {
  readonly size: number;
  /** Connections with calls in flight. */
  readonly inUse: number;
  readonly idle: number;
  /** Calls waiting for a connection. */
  readonly waiting: number;
  /**
   * Connections that accept no more calls at present. Needed only where a connection multiplexes calls; otherwise
   * `inUse` is taken.
   */
  readonly full?: number;
}

/** Something that the store does not allow this client. */
export interface Restriction {
  /** Such as a command. */
  readonly name: string;
  /** What is missing and what that costs. */
  readonly detail: string;
  /** No write can succeed. Default: false. */
  readonly blocksWrites?: boolean;
}

export interface Usage {
  readonly keys: number;
  readonly bytes: number;
  readonly approximate: boolean;
  /** `server`: counts everything on the servers, because the store cannot count by prefix. Default: `prefix`. */
  readonly scope?: "prefix" | "server";
}

/**
 * Notifies when a key that was read has changed. Absent: nothing read is cached in this process. A value may be cached
 * only if `epoch(key)` was the same non-zero number when its read was sent, when the reply arrived and whenever the value
 * is used.
 */
export interface PushChannel {
  /** Changes whenever pushes for this key may have been missed; 0 while the channel cannot be trusted. */
  epoch(key: string): number;
  /**
   * Whether every change made until a second ago to a key that was read has been pushed; cheap enough for every hit.
   * `now`: passed by a caller that has just read the clock and calls rarely.
   */
  isTrusted?(now?: number): boolean;
  /** `undefined` means: everything may have changed. Returns how to stop listening. */
  onChange(listener: (key: string | undefined) => void): () => void;
}

export type Failed = (error: unknown) => void;

/** The callback of a read: exactly one of its methods is called, once. */
export interface RecordTaker {
  /**
   * `stamps`: the ids of the stamps read with it, undefined for a missing one. Returns whether the payload is still
   * needed; if not, the store may reuse its memory.
   */
  take(record: StoreRecord | undefined, stamps?: readonly (Token | undefined)[]): boolean;
  fail(error: unknown): void;
}

/** Receives records. Returns whether any of their payloads is still needed. */
export type TakenMany = (records: readonly (StoreRecord | undefined)[]) => boolean;

/**
 * A store of records. Every method works on exact keys, whatever characters they contain, and is atomic per key.
 * Methods reject with BackendError or a subclass of it. They need no deadline or circuit breaker of their own: the core
 * adds both.
 */
export interface Backend {
  /** Short name for messages and statistics, such as `memory`. */
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly push?: PushChannel;

  /** Called once before anything else. Must not throw: the first cache of a process calls it after its constructor has returned. */
  open?(host: BackendHost): void;
  connect(): Promise<void>;
  /** Idempotent; afterwards the backend has no open socket or timer. */
  disconnect(): Promise<void>;
  /** Resolves after one round trip to the store. */
  ping(): Promise<void>;
  /**
   * Whether at least one part of the store answers: then a failed call says nothing about the others, and the circuit
   * breaker stays closed. Such a store itself stops calling the part that does not answer.
   */
  answersInPart?(): boolean;

  /**
   * Whether calls wait for a large transfer that goes on, or behind one: their deadlines do not apply then. Such a store
   * has deadlines of its own, which are longer for more data.
   */
  isTransferring?(): boolean;

  /** The store's current time in milliseconds, and the maximum error of that estimate. */
  now(): number;
  clockErrorMs(): number;
  /** Upper bound of how far the store's time is ahead of the local clock, for a store that knows it without reading a clock. */
  aheadMs?(): number;

  read(key: string): Promise<StoreRecord | undefined>;
  /**
   * As `read` and `write` with callbacks, for a store fast enough that the promises would dominate the cost.
   * `isWatched` false: the record will not be cached, so its changes need not be pushed.
   */
  readThen?(key: string, isWatched: boolean, taker: RecordTaker): void;
  writeThen?(item: KeyedRecord, done: () => void, failed: Failed): void;
  /**
   * As `readThen`, with the current ids of `stamps` in the same round trip: for a store without push, where stamps are
   * read with every entry.
   */
  readStampedThen?(key: string, stamps: readonly string[], taker: RecordTaker): void;
  /**
   * The current version of the record under a key; undefined where there is none. For a store without push that answers
   * synchronously within a microsecond or two: a cached value is compared with it on every hit.
   */
  versionNow?(key: string): Token | undefined;
  /** A record with at least `most` bytes of its payload if it has as many. Default: `read` is called. */
  readHead?(key: string, most: number): Promise<RecordHead | undefined>;
  /** In the order of `keys`. `isWatched`: as in `readThen`. Default: true. */
  readMany(keys: readonly string[], isWatched?: boolean): Promise<readonly (StoreRecord | undefined)[]>;
  /** As `readMany`, with callbacks. */
  readManyThen?(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void;
  write(item: KeyedRecord): Promise<void>;
  writeMany(items: readonly KeyedRecord[]): Promise<void>;
  /**
   * Compare-and-set: replaces the record under `key` if its version is `expected` (undefined: if there is no record).
   * `next` undefined removes the record.
   */
  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult>;
  /** Removes a record and returns what was there; the payload may be left empty. */
  take(key: string): Promise<StoreRecord | undefined>;
  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]>;
  /** Removes records without returning them. Default: `takeMany` is called. */
  removeMany?(keys: readonly string[]): Promise<void>;
  /** Marks these keys as recently used, so that the store does not evict them. */
  touch?(keys: readonly string[]): Promise<void>;

  /** Every record whose key starts with `prefix`, in batches, with cursors; a key may come twice. Payloads may be empty. */
  scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]>;
  /** Number and size of the keys under `prefix`; cheap and possibly sampled. */
  usage(prefix: string): Promise<Usage>;
  /**
   * The used share of the store's memory or disk limit, 0 to 1; undefined where there is no limit or it is unknown.
   * Never opens a connection: rejects with DISCONNECTED where there is none.
   */
  memoryUsage?(): Promise<number | undefined>;
  /** Whether a full store evicts entries instead of rejecting new ones: then being full is normal operation. */
  makesRoom?(): boolean;

  /**
   * What the store does not allow at present, empty if nothing is missing. `key`: one under which nothing is stored, to
   * find out whether the store accepts writes.
   */
  restrictions?(key: string): Promise<readonly Restriction[]>;

  pool?(): PoolState;
  /** For display: server kind, version, address without credentials. */
  describe?(): Promise<Readonly<Record<string, string | number | boolean>>>;
}

/** Adapts a promise to a RecordTaker callback. */
export function deliverTo(taker: RecordTaker, reading: Promise<StoreRecord | undefined>): void {
  reading.then(
    (record) => taker.take(record),
    (error: unknown) => taker.fail(error),
  );
}
