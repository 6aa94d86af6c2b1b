// Reads entries of a namespace: from the near tier, otherwise from the store, whose answer the near tier may then keep.
import { CodecError } from "../errors.ts";
import type { Found, ReadCallback } from "../namespace.ts";
import type { Near } from "../near/pushed-near.ts";
import { stampId } from "../record.ts";
import { settle } from "../resilience/guard.ts";
import type { Outcome } from "../resilience/guarded-call.ts";
import {
  FoundRead,
  type MaybeRecord,
  type Present,
  type RecordReading,
  UNDECIDED,
  ValueRead,
  type Watched,
} from "./entry-read.ts";

const NO_READS: readonly Watched[] = [];

export class EntryReader {
  readonly #reading: RecordReading;
  readonly #near: Near | undefined;

  constructor(reading: RecordReading) {
    this.#reading = reading;
    this.#near = reading.near;
  }

  get(key: string, callback: ReadCallback<unknown>): void {
    this.#reading.store.guard.begin(new ValueRead(this.#reading, "get", key, callback));
  }

  /** Fresh or stale, for getOrSet. */
  seek(key: string, callback: ReadCallback<Found | undefined>): void {
    this.#reading.store.guard.begin(new FoundRead(this.#reading, "getOrSet", key, callback));
  }

  /** The fresh values; a damaged entry among many counts as absent. */
  getMany(keys: readonly string[]): Promise<Map<string, unknown>> {
    const values = new Map<string, unknown>();
    const missing = this.#near === undefined ? keys : this.#peekInto(this.#near, values, keys);
    if (missing.length === 0) return Promise.resolve(values);
    return new Promise((resolve, reject) => {
      this.#reading.store.guard.call<void>(
        "getMany",
        (call) => this.#readInto(values, missing, call),
        () => resolve(values),
        reject,
      );
    });
  }

  /** Returns the keys that the near tier does not have. */
  #peekInto(near: Near, values: Map<string, unknown>, keys: readonly string[]): readonly string[] {
    return keys.filter((key) => {
      const value = near.peek(key);
      if (value !== undefined) values.set(key, this.#reading.own(value));
      return value === undefined;
    });
  }

  #readInto(values: Map<string, unknown>, keys: readonly string[], call: Outcome<void>): void {
    const { backend } = this.#reading.store;
    const spelled = keys.map(this.#reading.names.entry);
    const near = this.#near;
    const reads: readonly Watched[] =
      near === undefined ? NO_READS : keys.map((key, at) => near.begin(key, spelled[at] as string));
    const take = (records: readonly MaybeRecord[], present: Present): boolean => {
      try {
        return this.#takeMany(values, keys, records, reads, present, call);
      } catch (error) {
        notRead(error);
        return false;
      }
    };
    const failed = (error: unknown): void => {
      // One of them is damaged: read them one by one to find out which.
      if (error instanceof CodecError)
        Promise.all(spelled.map((key) => backend.read(key).catch(this.#asAbsent))).then(
          (records) => take(records, undefined),
          notRead,
        );
      else notRead(error);
    };
    const notRead = (error: unknown): void => {
      for (const read of reads) this.#reading.end(read);
      call.fail(error);
    };
    try {
      if (backend.readsStamped)
        // This store does not push changes, so the namespace's stamps are read along.
        backend
          .readMany([...spelled, ...this.#reading.stamps.namespaceKeys])
          .then((records) => take(records, records.slice(spelled.length).map(stampId)), failed);
      else
        backend.readManyThen(
          spelled,
          reads.some((read) => read !== undefined),
          (records) => take(records, this.#reading.stamps.knownNamespaceStamps()),
          failed,
        );
    } catch (error) {
      notRead(error);
    }
  }

  /** Returns whether any of the records is still needed. */
  #takeMany(
    values: Map<string, unknown>,
    keys: readonly string[],
    records: readonly MaybeRecord[],
    reads: readonly Watched[],
    present: Present,
    call: Outcome<void>,
  ): boolean {
    const { backend, clock } = this.#reading.store;
    // Refreshes the coarse clock, which judges all of them.
    clock.now();
    const notYet = backend.notYet();
    const undecided: Promise<void>[] = [];
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] as string;
      const value = this.#reading.valueNow(key, records[at], reads[at], present, notYet);
      if (value === UNDECIDED) {
        const found = this.#reading.found(key, records[at], reads[at]).catch(this.#asAbsent);
        undecided.push(found.then((one) => void (one?.fresh && values.set(key, one.value))));
      } else if (value !== undefined) values.set(key, value);
    }
    if (undecided.length === 0) call.succeed();
    else
      settle(
        Promise.all(undecided).then(() => {}),
        call,
      );
    return undecided.length > 0;
  }

  readonly #asAbsent = (error: unknown): undefined => {
    if (!(error instanceof CodecError)) throw error;
    this.#reading.store.report(error);
  };
}
