// What a record that was just read is worth to a namespace: its fresh value at once, or after the store was asked more.

import type { WatchedRead } from "../invalidation/inflight-reads.ts";
import { isFresh } from "../invalidation/liveness.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Found } from "../namespace.ts";
import type { Near } from "../near/pushed-near.ts";
import type { Entry, StoreRecord, Token } from "../record.ts";
import type { Entries } from "./entries.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** What `valueNow` says when it cannot tell. */
export const NOT_NOW: unique symbol = Symbol("not now");

export type Met = StoreRecord | undefined;
/** A read whose value may be kept near. */
export type Watched = WatchedRead | undefined;
/** The present stamps of the namespace, where they are known. */
export type Present = readonly (Token | undefined)[] | undefined;

export class RecordReading {
  readonly store: NamespaceHost;
  readonly names: Spelling;
  readonly seals: NamespaceStamps;
  readonly entries: Entries;
  readonly near: Near | undefined;
  readonly #copies: boolean;

  constructor(
    store: NamespaceHost,
    names: Spelling,
    seals: NamespaceStamps,
    entries: Entries,
    near: Near | undefined,
  ) {
    this.store = store;
    this.names = names;
    this.seals = seals;
    this.entries = entries;
    this.near = near;
    this.#copies = store.near?.sharesValues !== true;
  }

  /**
   * The fresh value of a record just read, or undefined; NOT_NOW where the store has to be asked more. `notYet`: a time
   * that the store has surely not come to.
   */
  valueNow(
    key: string,
    record: Met,
    read: Watched,
    present: Present,
    notYet = Number.POSITIVE_INFINITY,
  ): unknown {
    if (record === undefined) {
      this.end(read);
      return undefined;
    }
    if (record.kind !== "entry") return NOT_NOW;
    const { seals, store } = this;
    const isSealed = present !== undefined && seals.matches(record, present);
    if (!isSealed && !seals.isKnownLive(record)) return NOT_NOW;
    if (record.expires <= notYet && !isFresh(record, store.backend)) return NOT_NOW;
    let value: unknown;
    try {
      value = store.codec.decode(record.payload);
    } catch {
      return NOT_NOW;
    }
    return read === undefined ? value : this.#kept(key, value, record, read);
  }

  /** Fresh or stale, whatever has to be asked for it. */
  async found(key: string, record: Met, read: Watched): Promise<Found | undefined> {
    let isKept = false;
    try {
      const entry = await this.entries.live(key, record);
      const found = entry === undefined ? undefined : this.entries.found(entry, record ?? entry);
      if (read === undefined || entry === undefined || found?.fresh !== true || record !== entry)
        return found;
      // While the store was asked, what is at hand may have become that of something newer.
      if (!this.seals.isKnownLive(entry)) return found;
      isKept = true;
      return { ...found, value: this.#kept(key, found.value, entry, read) };
    } finally {
      if (!isKept) this.end(read);
    }
  }

  /** The read is over without a value to keep. */
  end(read: Watched): void {
    if (read !== undefined) this.near?.end(read);
  }

  /** What a caller gets of a value that is kept near: that stays as it is. */
  own(value: unknown): unknown {
    return this.#copies ? this.store.codec.copyTrusted(value) : value;
  }

  /** Keeps a value near if it may be, and returns what its caller gets. */
  #kept(key: string, value: unknown, entry: Entry, read: WatchedRead): unknown {
    return this.near?.keep(key, value, entry, read, this.seals) ? this.own(value) : value;
  }
}
