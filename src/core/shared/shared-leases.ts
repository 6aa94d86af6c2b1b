// What leases need of one namespace of a shared store, each question within the deadline.
import type { SwapResult } from "../backend.ts";
import type { Changes } from "../change-log.ts";
import type { Seals } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Found, Terms } from "../namespace.ts";
import type { Entry, Seal, StoreRecord, Token } from "../record.ts";
import type { Entries } from "./entries.ts";
import type { LeaseSpace } from "./lease.ts";
import type { SpaceStore } from "./namespace-host.ts";

export class SharedLeases implements LeaseSpace {
  readonly store: SpaceStore;
  readonly names: Spelling;
  readonly changes: Changes;
  readonly #seals: Seals;
  readonly #entries: Entries;

  constructor(store: SpaceStore, names: Spelling, changes: Changes, seals: Seals, entries: Entries) {
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

  sealFor(tags: readonly string[], lifeMs: number): Promise<Seal> {
    return this.#ask(() => this.#seals.present(tags, lifeMs));
  }

  groupStamps(groups: readonly number[], anew = false): Promise<readonly (Token | undefined)[]> {
    return this.#ask(() => this.#seals.groups(groups, anew));
  }

  entryFor(key: string, value: unknown, terms: Terms, seal: Seal): Entry {
    return this.#entries.make(key, this.store.codec.encode(value), terms, seal);
  }

  foundOf(entry: Entry, record: StoreRecord): Found {
    return this.#entries.found(entry, record);
  }

  isSealed(seal: Seal): Promise<boolean> {
    return this.#ask(async () => this.#seals.isLive(seal));
  }

  watchSeal(seal: Seal, onBroken: () => void): () => void {
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
