// Reads one entry of a shared store: what a record is worth to its namespace, and the guarded call that fetches it.

import type { RecordTaker } from "../backend.ts";
import type { XCacheError } from "../errors.ts";
import { frozen, type Handing } from "../frozen.ts";
import type { WatchedRead } from "../invalidation/inflight-reads.ts";
import { isFresh } from "../invalidation/liveness.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Found, ReadCallback } from "../namespace.ts";
import type { Near } from "../near/pushed-near.ts";
import type { Entry, StoreRecord, Token } from "../record.ts";
import { GuardedCall } from "../resilience/guarded-call.ts";
import type { Entries } from "./entries.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** What `valueNow` returns when only the store can decide. */
export const UNDECIDED: unique symbol = Symbol("undecided");

export type MaybeRecord = StoreRecord | undefined;
/** A read whose value the near tier may keep. */
export type Watched = WatchedRead | undefined;
/** The present stamps of the namespace, where known. */
export type Present = readonly (Token | undefined)[] | undefined;

export class RecordReading {
  readonly store: NamespaceHost;
  readonly names: Spelling;
  readonly stamps: NamespaceStamps;
  readonly entries: Entries;
  readonly near: Near | undefined;
  readonly #values: Handing;

  constructor(
    store: NamespaceHost,
    names: Spelling,
    stamps: NamespaceStamps,
    entries: Entries,
    near: Near | undefined,
  ) {
    this.store = store;
    this.names = names;
    this.stamps = stamps;
    this.entries = entries;
    this.near = near;
    this.#values = store.near?.values ?? "copy";
  }

  /**
   * The fresh value of a record just read, or undefined; UNDECIDED where the store must be asked more. `notYet`: a time
   * that the store's clock has certainly not reached.
   */
  valueNow(
    key: string,
    record: MaybeRecord,
    read: Watched,
    present: Present,
    notYet = Number.POSITIVE_INFINITY,
  ): unknown {
    if (record === undefined) {
      this.end(read);
      return undefined;
    }
    if (record.kind !== "entry") return UNDECIDED;
    const { stamps, store } = this;
    const hasStamps = present !== undefined && stamps.matches(record, present);
    if (!hasStamps && !stamps.isKnownLive(record)) return UNDECIDED;
    if (record.expires <= notYet && !isFresh(record, store.backend)) return UNDECIDED;
    let value: unknown;
    try {
      value = this.#given(store.codec.decode(record.payload));
    } catch {
      return UNDECIDED;
    }
    return read === undefined ? value : this.#kept(key, value, record, read);
  }

  /** The value, fresh or stale, after asking the store whatever is needed. */
  async found(key: string, record: MaybeRecord, read: Watched): Promise<Found | undefined> {
    let isKept = false;
    try {
      const entry = await this.entries.live(key, record);
      const decoded = entry === undefined ? undefined : this.entries.found(entry, record ?? entry);
      const found = decoded && { ...decoded, value: this.#given(decoded.value) };
      if (read === undefined || entry === undefined || found?.fresh !== true || record !== entry)
        return found;
      // While the store was asked, the stamps known here may have been replaced by newer ones.
      if (!this.stamps.isKnownLive(entry)) return found;
      isKept = true;
      return { ...found, value: this.#kept(key, found.value, entry, read) };
    } finally {
      if (!isKept) this.end(read);
    }
  }

  /** The read ended without a value to keep. */
  end(read: Watched): void {
    if (read !== undefined) this.near?.end(read);
  }

  /** What the caller gets of a value kept in the near tier. */
  own(value: unknown): unknown {
    if (this.#values === "shared" || (this.#values === "frozen" && Object.isFrozen(value))) return value;
    return this.store.codec.copyTrusted(value);
  }

  /** A value just decoded, as it is handed out. */
  #given(value: unknown): unknown {
    return this.#values === "frozen" ? frozen(value) : value;
  }

  /** Offers a value to the near tier, and returns what the caller gets. */
  #kept(key: string, value: unknown, entry: Entry, read: WatchedRead): unknown {
    return this.near?.keep(key, value, entry, read, this.stamps) ? this.own(value) : value;
  }
}

/** One object per read that memory does not answer: everything the read needs on its way is a field, not a closure. */
abstract class EntryRead<R> extends GuardedCall<R> implements RecordTaker {
  protected readonly reading: RecordReading;
  protected readonly key: string;
  #callback: ReadCallback<R> | undefined;
  /** In flight until the store answers, even if its caller timed out long ago. */
  #read: Watched;
  /** Whether the command was sent: an earlier failure says nothing about the entry. */
  protected isSent = false;

  constructor(reading: RecordReading, operation: string, key: string, callback: ReadCallback<R>) {
    super(reading.store.guard, operation);
    this.reading = reading;
    this.key = key;
    this.#callback = callback;
  }

  /** What the caller gets for a fresh value; undefined: there is none. */
  protected abstract ofFresh(value: unknown): R;

  protected abstract ofFound(found: Found | undefined): R;

  start(): void {
    this.isSent = true;
    const { names, near, stamps, store } = this.reading;
    const spelled = names.entry(this.key);
    this.#read = near?.begin(this.key, spelled);
    if (store.backend.readsStamped) store.backend.readStampedThen(spelled, stamps.namespaceKeys, this);
    else store.backend.readThen(spelled, this.#read !== undefined, this);
  }

  take(record: MaybeRecord, present?: Present): boolean {
    try {
      const value = this.reading.valueNow(this.key, record, this.#read, present);
      if (value === UNDECIDED) {
        this.reading.found(this.key, record, this.#read).then(
          (found) => this.succeed(this.ofFound(found)),
          (error: unknown) => this.fail(error),
        );
        return true;
      }
      this.succeed(this.ofFresh(value));
    } catch (error) {
      this.fail(error);
    }
    return false;
  }

  override fail(error: unknown): void {
    this.endRead();
    super.fail(error);
  }

  protected endRead(): void {
    this.reading.end(this.#read);
  }

  succeeded(result: R): void {
    this.#callback?.answered(result);
  }

  failed(error: XCacheError): void {
    this.#callback?.failed(error);
  }

  protected forget(): void {
    this.#callback = undefined;
  }
}

/** For `get`: fresh values only. */
export class ValueRead extends EntryRead<unknown> {
  protected ofFresh(value: unknown): unknown {
    return value;
  }

  protected ofFound(found: Found | undefined): unknown {
    return found?.fresh ? found.value : undefined;
  }
}

/** For getOrSet: fresh or stale. */
export class FoundRead extends EntryRead<Found | undefined> {
  protected ofFresh(value: unknown): Found | undefined {
    return value === undefined ? undefined : { value, fresh: true, expiredForMs: 0 };
  }

  protected ofFound(found: Found | undefined): Found | undefined {
    return found;
  }

  /** A damaged record is removed and counts as absent: the load replaces it. */
  override fail(error: unknown): void {
    if (!this.isSent) {
      super.fail(error);
      return;
    }
    this.endRead();
    this.reading.entries.discarded(this.key, error).then(
      (isGone) => (isGone ? this.succeed(undefined) : super.fail(error)),
      (thrown) => super.fail(thrown),
    );
  }
}
