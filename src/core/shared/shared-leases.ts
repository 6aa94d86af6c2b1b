// What leases need of one namespace of a shared store, each question within the deadline.
import type { SwapResult } from "../backend.ts";
import type { ChangeLog } from "../change-log.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { EntryOptions, Found } from "../namespace.ts";
import type { Entry, StampSet, StoreRecord, Token } from "../record.ts";
import type { Entries } from "./entries.ts";
import type { LeaseHost } from "./lease.ts";
import type { NamespaceHost } from "./namespace-host.ts";

export class SharedLeases implements LeaseHost {
  readonly store: NamespaceHost;
  readonly names: Spelling;
  readonly changes: ChangeLog;
  readonly #seals: NamespaceStamps;
  readonly #entries: Entries;

  constructor(
    store: NamespaceHost,
    names: Spelling,
    changes: ChangeLog,
    seals: NamespaceStamps,
    entries: Entries,
  ) {
    this.store = store;
    this.names = names;
    this.changes = changes;
    this.#seals = seals;
    this.#entries = entries;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.#ask(() => this.store.backend.read(this.names.entry(key)));
  }

  swap(key: string, expected: Token | undefined, next: StoreRecord | undefined): Promise<SwapResult> {
    return this.#entries.swap(key, expected, next);
  }

  stampsFor(tags: readonly string[], lifeMs: number): Promise<StampSet> {
    return this.#ask(() => this.#seals.present(tags, lifeMs));
  }

  groupStamps(groups: readonly number[], anew = false): Promise<readonly (Token | undefined)[]> {
    return this.#ask(() => this.#seals.groups(groups, anew));
  }

  entryFor(key: string, value: unknown, terms: EntryOptions, seal: StampSet): Entry {
    return this.#entries.make(key, this.store.codec.encode(value), terms, seal);
  }

  foundOf(entry: Entry, record: StoreRecord): Found {
    return this.#entries.found(entry, record);
  }

  hasStamps(seal: StampSet): Promise<boolean> {
    return this.#ask(async () => this.#seals.isLive(seal));
  }

  watchStamps(seal: StampSet, onBroken: () => void): () => void {
    const stops = this.#seals.stampsOf(seal).map(([key, id]) => this.#watch(key, id, onBroken));
    return () => {
      for (const stop of stops) stop();
    };
  }

  #watch(stampKey: string, id: Token, onChange: () => void): () => void {
    return this.store.listen(stampKey, () => {
      // A push may only mean a longer life: the stamp itself tells.
      this.#ask(() => this.store.stamps.confirm([stampKey])).then(([present]) => {
        if (present !== id) onChange();
      }, this.store.report);
    });
  }

  #ask<T>(question: () => Promise<T>): Promise<T> {
    return this.store.guard.run("getOrSet", question);
  }
}
