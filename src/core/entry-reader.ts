// Reading entries of a shared store: from the near tier, else from the store, and then kept near if they may be.
import type { Failed } from "./backend.ts";
import type { Entries } from "./entries.ts";
import { CodecError } from "./errors.ts";
import { type Outcome, settle } from "./guard.ts";
import type { Spelling } from "./keys.ts";
import { isFresh } from "./liveness.ts";
import type { Near } from "./near.ts";
import type { WatchedRead } from "./read-watch.ts";
import { type Entry, type StoreRecord, stampId, type Token } from "./record.ts";
import type { Seals } from "./seals.ts";
import type { Found } from "./space.ts";
import type { SpaceStore } from "./space-store.ts";

/** What `#atOnce` says when it cannot tell. */
const NOT_AT_ONCE: unique symbol = Symbol("not at once");
const NO_READS: readonly Watched[] = [];

type Met = StoreRecord | undefined;
type Watched = WatchedRead | undefined;
/** The present stamps of the namespace, where they are known. */
type Present = readonly (Token | undefined)[] | undefined;

export class EntryReader {
  readonly #store: SpaceStore;
  readonly #names: Spelling;
  readonly #seals: Seals;
  readonly #entries: Entries;
  readonly #near: Near | undefined;
  /** What is kept near stays as it is: a caller gets a copy, unless values are shared. */
  readonly #copies: boolean;

  constructor(store: SpaceStore, names: Spelling, seals: Seals, entries: Entries, near: Near | undefined) {
    this.#store = store;
    this.#names = names;
    this.#seals = seals;
    this.#entries = entries;
    this.#near = near;
    this.#copies = store.near?.sharesValues !== true;
  }

  peek(key: string): unknown {
    const value = this.#near?.peek(key);
    return value === undefined || !this.#copies ? value : this.#store.codec.copyTrusted(value);
  }

  get(key: string, done: (value: unknown) => void, failed: Failed): void {
    this.#store.guard.ask<unknown>(
      "get",
      (call) => {
        const fail = (error: unknown): void => call.fail(error);
        this.#read(
          key,
          (record, read, present) => {
            const value = this.#atOnce(key, record, read, present);
            if (value === NOT_AT_ONCE) {
              this.#found(key, record, read).then(
                (found) => call.succeed(found?.fresh ? found.value : undefined),
                fail,
              );
              return true;
            }
            call.succeed(value);
            return false;
          },
          fail,
        );
      },
      done,
      failed,
    );
  }

  /** Fresh or stale, for getOrSet. */
  seek(key: string, done: (found: Found | undefined) => void, failed: Failed): void {
    this.#store.guard.ask<Found | undefined>(
      "getOrSet",
      (call) => {
        const failedToRead = (error: unknown): void => {
          // A load puts something better in the place of what is damaged.
          this.#entries.discarded(key, error).then(
            (isGone) => (isGone ? call.succeed(undefined) : call.fail(error)),
            (thrown) => call.fail(thrown),
          );
        };
        this.#read(
          key,
          (record, read, present) => {
            const value = this.#atOnce(key, record, read, present);
            if (value === NOT_AT_ONCE) {
              this.#found(key, record, read).then((found) => call.succeed(found), failedToRead);
              return true;
            }
            call.succeed(value === undefined ? undefined : { value, fresh: true, expiredForMs: 0 });
            return false;
          },
          failedToRead,
        );
      },
      done,
      failed,
    );
  }

  /** The fresh ones; of many, one that cannot be read is as good as absent. */
  getMany(keys: readonly string[]): Promise<Map<string, unknown>> {
    const values = new Map<string, unknown>();
    const missing = this.#near === undefined ? keys : this.#peekInto(values, keys);
    if (missing.length === 0) return Promise.resolve(values);
    return new Promise((resolve, reject) => {
      this.#store.guard.ask<void>(
        "getMany",
        (call) => this.#readInto(values, missing, call),
        () => resolve(values),
        reject,
      );
    });
  }

  /** Returns those that are not near. */
  #peekInto(values: Map<string, unknown>, keys: readonly string[]): readonly string[] {
    return keys.filter((key) => {
      const value = this.peek(key);
      if (value !== undefined) values.set(key, value);
      return value === undefined;
    });
  }

  #readInto(values: Map<string, unknown>, keys: readonly string[], call: Outcome<void>): void {
    const { backend } = this.#store;
    const spelled = keys.map(this.#names.entry);
    const near = this.#near;
    const reads: readonly Watched[] = near === undefined ? NO_READS : spelled.map((key) => near.begin(key));
    const take = (records: readonly Met[], present: Present): boolean => {
      try {
        return this.#takeMany(values, keys, records, reads, present, call);
      } catch (error) {
        call.fail(error);
        return false;
      }
    };
    const failed = (error: unknown): void => {
      // One of them is damaged: one by one it shows which.
      if (error instanceof CodecError)
        Promise.all(spelled.map((key) => backend.read(key).catch(this.#asAbsent))).then(
          (records) => take(records, undefined),
          notRead,
        );
      else notRead(error);
    };
    const notRead = (error: unknown): void => {
      for (const read of reads) this.#end(read);
      call.fail(error);
    };
    if (backend.readsSealed)
      // With the namespace's stamps, which have to be read with every entry.
      backend
        .readMany([...spelled, ...this.#seals.lineage])
        .then((records) => take(records, records.slice(spelled.length).map(stampId)), failed);
    else
      backend.readManyThen(
        spelled,
        near !== undefined,
        (records) => take(records, this.#seals.knownLineage()),
        failed,
      );
  }

  /** Returns whether anything of the records is still needed. */
  #takeMany(
    values: Map<string, unknown>,
    keys: readonly string[],
    records: readonly Met[],
    reads: readonly Watched[],
    present: Present,
    call: Outcome<void>,
  ): boolean {
    const notYet = this.#store.backend.notYet();
    const doubtful: Promise<void>[] = [];
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] as string;
      const value = this.#atOnce(key, records[at], reads[at], present, notYet);
      if (value === NOT_AT_ONCE) {
        const found = this.#found(key, records[at], reads[at]).catch(this.#asAbsent);
        doubtful.push(found.then((one) => void (one?.fresh && values.set(key, one.value))));
      } else if (value !== undefined) values.set(key, value);
    }
    if (doubtful.length === 0) call.succeed();
    else
      settle(
        Promise.all(doubtful).then(() => {}),
        call,
      );
    return doubtful.length > 0;
  }

  readonly #asAbsent = (error: unknown): undefined => {
    if (!(error instanceof CodecError)) throw error;
    this.#store.report(error);
  };

  #read(key: string, done: (record: Met, read: Watched, present: Present) => boolean, failed: Failed): void {
    const spelled = this.#names.entry(key);
    const read = this.#near?.begin(spelled);
    const notRead = (error: unknown): void => {
      this.#end(read);
      failed(error);
    };
    const isRead = (record: Met, present?: Present): boolean => {
      try {
        return done(record, read, present);
      } catch (error) {
        failed(error);
        return false;
      }
    };
    try {
      const { backend } = this.#store;
      if (backend.readsSealed) backend.readSealedThen(spelled, this.#seals.lineage, isRead, notRead);
      else backend.readThen(spelled, read !== undefined, isRead, notRead);
    } catch (error) {
      notRead(error);
    }
  }

  /**
   * The fresh value of a record just read, or undefined; NOT_AT_ONCE where the store has to be asked more. `notYet`: a time
   * that the store has surely not come to.
   */
  #atOnce(
    key: string,
    record: Met,
    read: Watched,
    present: Present,
    notYet = Number.POSITIVE_INFINITY,
  ): unknown {
    if (record === undefined) {
      this.#end(read);
      return undefined;
    }
    if (record.kind !== "entry") return NOT_AT_ONCE;
    const seals = this.#seals;
    const isSealed = present !== undefined && seals.isSealedWith(record, present);
    if (!isSealed && !seals.isKnownLive(record)) return NOT_AT_ONCE;
    if (record.expires <= notYet && !isFresh(record, this.#store.backend)) return NOT_AT_ONCE;
    let value: unknown;
    try {
      value = this.#store.codec.decode(record.payload);
    } catch {
      return NOT_AT_ONCE;
    }
    return read === undefined ? value : this.#kept(key, value, record, read);
  }

  async #found(key: string, record: Met, read: Watched): Promise<Found | undefined> {
    let isKept = false;
    try {
      const entry = await this.#entries.live(key, record);
      const found = entry === undefined ? undefined : this.#entries.found(entry, record ?? entry);
      if (read === undefined || entry === undefined || found?.fresh !== true || record !== entry)
        return found;
      // While the store was asked, what is at hand may have become that of something newer.
      if (!this.#seals.isKnownLive(entry)) return found;
      isKept = true;
      return { ...found, value: this.#kept(key, found.value, entry, read) };
    } finally {
      if (!isKept) this.#end(read);
    }
  }

  /** Keeps a value near, and returns what its caller gets. */
  #kept(key: string, value: unknown, entry: Entry, read: WatchedRead): unknown {
    this.#near?.keep(key, value, entry, read, this.#seals);
    return this.#copies ? this.#store.codec.copyTrusted(value) : value;
  }

  #end(read: Watched): void {
    if (read !== undefined) this.#near?.end(read);
  }
}
