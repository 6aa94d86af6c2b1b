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
  /** Smallest step of a lifetime in milliseconds; lifetimes are rounded down to it. */
  readonly ttlResolutionMs: number;
  /** An acknowledged write may be lost when another server takes over; the backend then tells of it by `met`. */
  readonly replicated?: boolean;
  /** What this process changes is changed in the order it was sent, for the library's own records of a namespace. */
  readonly ordered?: boolean;
}

/** A server as a new connection finds it. */
export interface MetServer {
  /** Put at the end of a key of the library, it makes the key be on this server. */
  readonly anchor: string;
  /** Another one after every start of its process. */
  readonly runId: string;
  /** When its process started, in the store's time; a second early at most. */
  readonly startedAt: number;
  /** When the server in this place last proved alive to this process, by the local clock; 0: never. */
  readonly lastProvenAt: number;
  /** Reaches the server before anybody else does. */
  readonly records: Pick<Backend, "read" | "write" | "take" | "now">;
  /** Whether a key is on this server. */
  owns(key: string): boolean;
}

/** What the core lends a backend when it is opened. */
export interface BackendHost {
  readonly clock: Clock;
  /** Deadline of a store operation, in milliseconds; the core enforces it, a client may use it to drop sockets. */
  readonly operationTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
  /** Whether entries that were read are kept in this process: then most reads are watched ones. */
  readonly keepsEntries?: boolean;
  /** Reports what no caller is waiting for, such as a lost connection. */
  report(error: Error): void;
  /** Says that an entry was dropped to make room. */
  evicted(key: string): void;
  /** Says that a server was reached which may not be the one before; nothing else may use it until this resolves. */
  onServer(server: MetServer): Promise<void>;
}

export interface KeyedRecord {
  readonly key: string;
  readonly record: StoreRecord;
  /** How long the store keeps it, from now, in milliseconds; Infinity for ever. */
  readonly lifetimeMs: number;
}

/** `won`: the record was replaced. Otherwise `current` is what stands there. */
export type SwapResult =
  | { readonly won: true }
  | { readonly won: false; readonly current: StoreRecord | undefined };

export interface ScanItem {
  readonly key: string;
  readonly record: StoreRecord;
  /** Bytes this key takes in the store, as far as the store can tell. */
  readonly bytes: number;
}

export interface ScanOptions {
  /** Stop as soon as this aborts. */
  readonly signal?: AbortSignal;
}

export interface PoolState {
  readonly size: number;
  /** Connections with calls under way. */
  readonly inUse: number;
  readonly idle: number;
  /** Calls that wait for a connection. */
  readonly waiting: number;
  /**
   * Connections that take no more calls at present. To be given where a connection carries many calls at once; where it
   * carries one, those in use are.
   */
  readonly full?: number;
}

export interface Usage {
  readonly keys: number;
  readonly bytes: number;
  readonly approximate: boolean;
  /** `server`: of everything there, since the store cannot tell prefixes apart. Default: `prefix`. */
  readonly scope?: "prefix" | "server";
}

/**
 * A store that tells when a key it handed out has changed. Absent: nothing read is ever kept at hand.
 * A value may be kept only if `epoch(key)` was the same non-zero number when its read was sent, when the reply
 * arrived and whenever the value is used.
 */
export interface PushChannel {
  /** Changes whenever pushes for this key may have been missed; 0 while the channel cannot be trusted. */
  epoch(key: string): number;
  /**
   * Whether every change of anything read until a second ago has been told; cheap enough to ask at every hit. `now`: from
   * somebody who has just read the clock, and asks rarely.
   */
  isTrusted?(now?: number): boolean;
  /** `undefined` means: everything may have changed. Returns how to stop listening. */
  onChange(listener: (key: string | undefined) => void): () => void;
}

export type Failed = (error: unknown) => void;

/** Whoever reads a record. Told one of the two, once. */
export interface RecordTaker {
  /**
   * `stamps`: the ids of those that were asked for with it, a missing one undefined. Returns whether its payload is still
   * needed: if not, the store may use the memory again.
   */
  take(record: StoreRecord | undefined, stamps?: readonly (Token | undefined)[]): boolean;
  fail(error: unknown): void;
}

/** Takes records. Returns whether anything of them is still needed. */
export type TakenMany = (records: readonly (StoreRecord | undefined)[]) => boolean;

/**
 * A store of records. Every method works on exact keys, whatever characters they hold, and is atomic per key.
 * Methods reject with BackendError or a child of it. Nothing here may block for longer than it must:
 * the core adds the deadline and the circuit breaker.
 */
export interface Backend {
  /** Short name for messages and statistics, such as `memory`. */
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly push?: PushChannel;

  /** Called once before anything else. */
  open?(host: BackendHost): void;
  connect(): Promise<void>;
  /** Idempotent; afterwards no socket or timer of the backend is left. */
  disconnect(): Promise<void>;
  /** Resolves when the store has answered a round trip. */
  ping(): Promise<void>;
  /**
   * Whether a part of the store answers: then one call that failed says nothing of the others, and the circuit stays
   * closed. Such a store itself stops asking the part that does not answer.
   */
  answersInPart?(): boolean;

  /** The store's present time in milliseconds, and how far that estimate may be off. */
  now(): number;
  clockErrorMs(): number;
  /** By how much the store's time may be ahead of the local clock at most; for a store that tells it without reading one. */
  aheadMs?(): number;

  read(key: string): Promise<StoreRecord | undefined>;
  /**
   * As `read` and `write`, calling back instead: for a store that answers so many calls that promises weigh.
   * `isWatched` false: nothing of it is kept, so its changes need not be told.
   */
  readThen?(key: string, isWatched: boolean, taker: RecordTaker): void;
  writeThen?(item: KeyedRecord, done: () => void, failed: Failed): void;
  /**
   * As `readThen`, together with the present ids of stamps and in one round trip: for a store that does not tell of
   * changes, where they are asked for with every entry.
   */
  readStampedThen?(key: string, stamps: readonly string[], taker: RecordTaker): void;
  /**
   * The version of the record under a key as it is now; undefined where there is none. For a store that tells nothing of
   * changes but answers at once, in a microsecond or two: what is kept is compared with it whenever it is used.
   */
  versionNow?(key: string): Token | undefined;
  /** In the order of `keys`. `isWatched`: as in `readThen`; true where it is not said. */
  readMany(keys: readonly string[], isWatched?: boolean): Promise<readonly (StoreRecord | undefined)[]>;
  /** As `readMany`, calling back instead. */
  readManyThen?(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void;
  write(item: KeyedRecord): Promise<void>;
  writeMany(items: readonly KeyedRecord[]): Promise<void>;
  /**
   * Replaces the record under `key` if its version is `expected` (`undefined`: if there is none).
   * `next` undefined removes it.
   */
  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult>;
  /** Removes a record and returns what was there; the payload may be left empty. */
  take(key: string): Promise<StoreRecord | undefined>;
  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]>;
  /** Removes records that nobody wants to see. Where it is left out, `takeMany` is called. */
  removeMany?(keys: readonly string[]): Promise<void>;
  /** Tells the store that these keys are in use, so that it does not evict them. */
  touch?(keys: readonly string[]): Promise<void>;

  /** Every record whose key starts with `prefix`, in batches, with cursors; a key may come twice. Payloads may be empty. */
  scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]>;
  /** How much the keys under `prefix` take; cheap and possibly sampled. */
  usage(prefix: string): Promise<Usage>;
  /**
   * The share of its memory or room that the store has used, 0 to 1; undefined where it has no bound or does not tell.
   * Connects to nothing for it: rejects with DISCONNECTED where nothing is connected.
   */
  fill?(): Promise<number | undefined>;
  /** Whether a full store drops entries instead of refusing new ones: then it is full in the usual course of things. */
  makesRoom?(): boolean;

  pool?(): PoolState;
  /** Facts for people: server kind, version, address without credentials. */
  describe?(): Promise<Readonly<Record<string, string | number | boolean>>>;
}

/** Adapts a promise to a RecordTaker callback. */
export function deliverTo(taker: RecordTaker, reading: Promise<StoreRecord | undefined>): void {
  reading.then(
    (record) => taker.take(record),
    (error: unknown) => taker.fail(error),
  );
}
