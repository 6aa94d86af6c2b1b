// Leases in a shared store: which process may load a key now, and whether what it loaded may still be stored.
//
// The lease lives in the entry's own key, so a set or delete overwrites it and storing is one compare-and-swap. How a load
// gets one: lease-admission.ts; how it renews it and stores its result: lease-ticket.ts.
import type { ChangeLog } from "../change-log.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Lease, StampSet, StoreRecord, Token } from "../record.ts";
import type { Entries } from "./entries.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** A holder that has not renewed its lease for this long counts as dead. */
export const LEASE_MS = 6_000;
/** When a lease expires whose load has ended without a value: no lease that is or was held expires then. */
export const ENDED = 0;
/** How long after a leap of the store's time other processes may renew leases by the former time. */
const UNSETTLED_MS = 20_000;
/** The store's time has leapt if it moves by more than this against our own clock. */
const LEAP_MS = 1_000;
/** Leases of other processes that are remembered. */
const MOST_SEEN = 100;

export const isEnded = (record: StoreRecord | undefined): record is Lease =>
  record?.kind === "lease" && record.expires === ENDED;

/** What leases need of their namespace; every call to the store has the operation's deadline. */
export class Leases {
  readonly store: NamespaceHost;
  readonly names: Spelling;
  readonly changes: ChangeLog;
  readonly entries: Entries;
  readonly #stamps: NamespaceStamps;
  /** Leases that stood in the way, and when each was first seen as it is, by our own clock. */
  readonly #seen = new Map<string, Pick<Lease, "version" | "expires"> & { readonly at: number }>();
  /** The store's time minus ours, and when it last leapt. */
  #offset: number | undefined;
  #leaptAt = Number.NEGATIVE_INFINITY;

  constructor(
    store: NamespaceHost,
    names: Spelling,
    changes: ChangeLog,
    stamps: NamespaceStamps,
    entries: Entries,
  ) {
    this.store = store;
    this.names = names;
    this.changes = changes;
    this.#stamps = stamps;
    this.entries = entries;
  }

  read(spelled: string): Promise<StoreRecord | undefined> {
    return this.#guarded(() => this.store.backend.read(spelled));
  }

  /** The present stamps of these tags; the store has confirmed each of them. */
  stampsFor(tags: readonly string[], lifeMs: number): StampSet | Promise<StampSet> {
    // Stamps this process already knows need no call to the store, and no deadline.
    return this.#stamps.presentNow(tags, lifeMs) ?? this.#guarded(() => this.#stamps.present(tags, lifeMs));
  }

  /** Stamps of tag groups, for tags that a load names only at its end. `confirm`: read them from the store itself. */
  groupStamps(groups: readonly number[], confirm = false): Promise<readonly (Token | undefined)[]> {
    return this.#guarded(() => this.#stamps.groups(groups, confirm));
  }

  /** Whether all of these stamps are still present. */
  hasStamps(stamps: StampSet): Promise<boolean> {
    return this.#guarded(async () => this.#stamps.isLive(stamps));
  }

  /** Calls `onBroken` as soon as the store reports that one of these stamps was replaced; returns how to stop. */
  watchStamps(stamps: StampSet, onBroken: () => void): () => void {
    const stops = this.#stamps.stampsOf(stamps).map(([key, id]) => this.#watch(key, id, onBroken));
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** How long ago this process first saw a lease as it is now: its holder has not renewed it since. */
  unrenewedMs(lease: Lease): number {
    const now = this.store.clock.now();
    const { key, version, expires } = lease;
    const seen = this.#seen.get(key);
    if (seen?.version === version && seen.expires === expires) return now - seen.at;
    this.#seen.delete(key);
    const oldest = this.#seen.keys().next().value;
    if (this.#seen.size >= MOST_SEEN && oldest !== undefined) this.#seen.delete(oldest);
    this.#seen.set(key, { version, expires, at: now });
    return 0;
  }

  /** The record of the key is not a lease any more. */
  forget(spelled: string): void {
    this.#seen.delete(spelled);
  }

  /** Whether the store's clock was changed so recently that holders may not know its new time yet. */
  hasTimeLeapt(storeNow = this.store.backend.now()): boolean {
    const { backend, clock } = this.store;
    const now = clock.now();
    const offset = storeNow - now;
    if (this.#offset !== undefined && Math.abs(offset - this.#offset) > LEAP_MS + backend.clockErrorMs())
      this.#leaptAt = now;
    this.#offset = offset;
    return now - this.#leaptAt < UNSETTLED_MS;
  }

  #watch(stampKey: string, id: Token, onChange: () => void): () => void {
    return this.store.listen(stampKey, () => {
      // A push may only mean that the stamp's lifetime was extended: compare its value.
      this.#guarded(() => this.store.stamps.confirm([stampKey])).then(([present]) => {
        if (present !== id) onChange();
      }, this.store.report);
    });
  }

  #guarded<T>(work: () => Promise<T>): Promise<T> {
    return this.store.guard.run("getOrSet", work);
  }
}
