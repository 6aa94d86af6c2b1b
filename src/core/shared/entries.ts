// The entries of one namespace of a shared store: how one is made, and whether a record read is still live.
import type { KeyedRecord, SwapResult } from "../backend.ts";
import { CodecError } from "../errors.ts";
import { entryOf, expiredForMs, isFresh, lifetimeMs } from "../invalidation/liveness.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import { OwnExpiries } from "../invalidation/own-expiries.ts";
import type { Spelling } from "../keys.ts";
import type { EntryOptions, Found, Inspection, SightedEntry } from "../namespace.ts";
import type { Entry, StampSet, StoreRecord, Token } from "../record.ts";
import type { NamespaceHost } from "./namespace-host.ts";

export class Entries {
  readonly #store: NamespaceHost;
  readonly #names: Spelling;
  readonly #stamps: NamespaceStamps;
  readonly #reclaiming = new Set<string>();

  constructor(store: NamespaceHost, names: Spelling, stamps: NamespaceStamps) {
    this.#store = store;
    this.#names = names;
    this.#stamps = stamps;
  }

  make(spelled: string, payload: Entry["payload"], options: EntryOptions, stamps: StampSet): Entry {
    const { backend, clock } = this.#store;
    const created = backend.now();
    const expires = created + options.ttlMs;
    const version = clock.token();
    if (OwnExpiries.matters(options.ttlMs, backend.clockErrorMs))
      backend.ownExpiries.add(version, options.ttlMs, options.staleMs);
    return {
      kind: "entry",
      version,
      key: spelled,
      namespaceStamps: stamps.namespaceStamps,
      tags: stamps.tags,
      created,
      expires,
      staleUntil: expires + options.staleMs,
      payload,
    };
  }

  /** An entry as it is handed to the backend. */
  item(key: string, payload: Entry["payload"], options: EntryOptions, stamps: StampSet): KeyedRecord {
    const record = this.make(this.#names.entry(key), payload, options, stamps);
    return { key: record.key, record, lifetimeMs: lifetimeMs(record, record.created) };
  }

  /** The entry behind a record if its stamps are present; a dead one is reclaimed when a read finds it. */
  async live(key: string, record: StoreRecord | undefined): Promise<Entry | undefined> {
    const entry = entryOf(record, this.#names.entry(key));
    if (entry === undefined) return undefined;
    if (await this.#stamps.isLive(entry)) return entry;
    if (record === entry) this.#reclaim(key, entry);
    return undefined;
  }

  /** A live entry that has not expired. */
  async fresh(key: string, record: StoreRecord | undefined): Promise<Entry | undefined> {
    const entry = await this.live(key, record);
    return entry !== undefined && isFresh(entry, this.#store.backend) ? entry : undefined;
  }

  /** `record` is what the entry was found in. */
  found(entry: Entry, record: StoreRecord): Found {
    const { backend, codec } = this.#store;
    const fresh = isFresh(entry, backend);
    const value = codec.decode(entry.payload);
    return {
      value,
      fresh,
      expiredForMs: fresh ? 0 : expiredForMs(entry, backend),
      id: entry.version,
      record,
    };
  }

  /** What is known of an entry, live or not. */
  async sighted(entry: Entry): Promise<SightedEntry> {
    const { fresh, ttlMs, staleMs, tags } = this.inspection(entry, 0);
    const invalidatedBy = await this.#stamps.invalidationOf(entry);
    return {
      ...{ fresh, ttlMs, staleMs, tags },
      expiredForMs: fresh ? 0 : expiredForMs(entry, this.#store.backend),
      id: entry.version,
      ...(invalidatedBy !== undefined && { invalidatedBy }),
    };
  }

  inspection(entry: Entry, bytes: number): Inspection {
    const { backend } = this.#store;
    const now = backend.now();
    const fresh = isFresh(entry, backend);
    const leftMs = backend.ownExpiries.leftMs(entry.version) ?? entry.expires - now;
    const staleMs = entry.staleUntil - entry.expires || 0;
    return {
      key: this.#names.keyOf(entry.key),
      fresh,
      ttlMs: fresh ? Math.max(0, leftMs) : 0,
      staleMs: fresh ? staleMs : Math.max(0, entry.staleUntil - now),
      ageMs: Math.max(0, now - entry.created),
      tags: entry.tags.map(({ tag }) => tag),
      bytes,
    };
  }

  /**
   * Replaces a record if it is still `expected`. `now`: the store's time, where the caller has it. `keptMs`: how
   * long the store keeps it at least.
   */
  swap(
    spelled: string,
    expected: Token | undefined,
    next: StoreRecord | undefined,
    now?: number,
    keptMs = 0,
  ): Promise<SwapResult> {
    const { backend, guard } = this.#store;
    return guard.run("getOrSet", () => {
      const lifeMs = next === undefined ? 0 : Math.max(keptMs, this.#lifetimeMs(next, now ?? backend.now()));
      return backend.swap(
        spelled,
        expected,
        next && lifeMs > 0 ? { record: next, lifetimeMs: lifeMs } : undefined,
      );
    });
  }

  /** Removes a damaged record; one written by a newer version of xcache stays. Returns whether it was removed. */
  async discarded(key: string, error: unknown): Promise<boolean> {
    if (!(error instanceof CodecError) || error.code !== "FRAME_INVALID") return false;
    this.#store.report(error);
    await this.#store.backend.take(this.#names.entry(key)).catch((failure: unknown) => {
      // The removed record could not be decoded either.
      if (!(failure instanceof CodecError)) throw failure;
    });
    return true;
  }

  #lifetimeMs(record: StoreRecord, now: number): number {
    const leftMs =
      record.kind === "entry" ? this.#store.backend.ownExpiries.leftMs(record.version) : undefined;
    if (record.kind !== "entry" || leftMs === undefined) return lifetimeMs(record, now);
    return leftMs + record.staleUntil - record.expires;
  }

  #reclaim(key: string, dead: Entry): void {
    if (this.#reclaiming.has(key)) return;
    this.#reclaiming.add(key);
    this.swap(dead.key, dead.version, undefined)
      .catch(this.#store.report)
      .finally(() => this.#reclaiming.delete(key));
  }
}
