// The bounded in-process store under the memory backend and the near tier: entries in numbered slots, found through
// one Map per namespace, bounded by entries and bytes over all namespaces together.
import type { Clock } from "../../core/clock.ts";
import { Columns } from "./columns.ts";
import { Eviction } from "./eviction.ts";
import { hashKey } from "./key-hash.ts";
import { SlotIndex } from "./slot-index.ts";

export type { SlotIndex };

/** What a slot's entry was stored under. Once not live, it never is again. */
export interface SlotSeal {
  isLive(): boolean;
}

export interface SlotsOptions {
  /** Most entries, over all indexes. */
  readonly maxEntries: number;
  /** Most bytes, over all indexes, as told to `put`; Infinity for no bound. */
  readonly maxBytes: number;
  readonly clock: Clock;
  /** Told of entries that left to make room, not of those that had expired or died; called when the store is in order again. */
  readonly onEvict?: (index: SlotIndex, key: string) => void;
}

/** How many slots every insertion sweeps, so that a busy store needs no timer to stay clean. */
const SWEPT_PER_INSERTION = 2;
/** What fits the column; a larger entry counts as this much. */
const MOST_BYTES = 0xffff_ffff;

export class Slots<S extends SlotSeal> extends Columns<S> {
  readonly maxEntries: number;
  readonly maxBytes: number;
  /** Entries stored, the expired and dead ones not yet reclaimed among them. */
  size = 0;
  /** Sum of their bytes. */
  bytes = 0;
  /** Called when the first entry arrives in an empty store. */
  onOccupied: (() => void) | undefined;
  readonly #clock: Clock;
  readonly #onEvict: ((index: SlotIndex, key: string) => void) | undefined;
  readonly #eviction: Eviction;
  readonly #indexes: (SlotIndex | undefined)[] = [];
  readonly #freeIds: number[] = [];
  #evicted: { index: SlotIndex; key: string }[] = [];
  #sweepAt = 0;

  constructor(options: SlotsOptions) {
    super(options.maxEntries);
    this.maxEntries = options.maxEntries;
    this.maxBytes = options.maxBytes;
    this.#clock = options.clock;
    this.#onEvict = options.onEvict;
    this.#eviction = new Eviction({
      hashOf: (slot) => hashKey(this.keys[slot]!, this.#ownerOf(slot)),
      isSpent: (slot) => this.#isSpent(slot, this.#clock.coarse()),
    });
    this.#eviction.fit(this.capacity);
  }

  openIndex(): SlotIndex {
    const id = this.#freeIds.pop() ?? this.#indexes.length;
    const index = new SlotIndex(id);
    this.#indexes[id] = index;
    return index;
  }

  /** Empties an index and gives up its place; it must not be used afterwards. */
  dropIndex(index: SlotIndex): void {
    this.clearIndex(index);
    this.#indexes[index.id] = undefined;
    this.#freeIds.push(index.id);
  }

  clearIndex(index: SlotIndex): void {
    for (const [, slot] of index) this.#vacate(slot, false);
    index.clear();
  }

  /** Records a use of the entry. */
  touch(slot: number): void {
    this.#eviction.touch(slot);
  }

  /**
   * Stores an entry, in place of the key's present one if there is one, and makes room for it.
   * Times are milliseconds of the clock; `staleUntil` is at least `expires`.
   * Returns its slot, or -1 if it alone exceeds `maxBytes`: then the key has no entry and no other one has left.
   */
  put(
    index: SlotIndex,
    key: string,
    value: unknown,
    seal: S,
    created: number,
    expires: number,
    staleUntil: number = expires,
    bytes = 0,
  ): number {
    const counted = Math.min(Math.ceil(bytes), MOST_BYTES);
    if (counted > this.maxBytes) {
      this.remove(index, key);
      return -1;
    }
    const present = index.get(key);
    const slot = present === undefined ? this.#insert(index, key, counted) : this.#replace(present, counted);
    this.values[slot] = value;
    this.seals[slot] = seal;
    this.writeTimes(slot, created, expires, staleUntil);
    if (this.#evicted.length > 0) this.#tellEvicted();
    return slot;
  }

  /** Whether there was an entry, expired and dead ones included. */
  remove(index: SlotIndex, key: string): boolean {
    const slot = index.get(key);
    if (slot === undefined) return false;
    this.#drop(slot, false);
    return true;
  }

  /** Looks at this many slots, going on where the last call ended, and reclaims what is expired or dead. Returns how many. */
  sweep(slots: number): number {
    return this.#sweep(slots, this.#clock.now());
  }

  /** How many slots a full sweep has to look at. */
  get sweepLength(): number {
    return this.used;
  }

  #insert(index: SlotIndex, key: string, bytes: number): number {
    this.#sweep(SWEPT_PER_INSERTION, this.#clock.coarse());
    this.#makeRoom(1, bytes, -1);
    const slot = this.allocate();
    this.#eviction.fit(this.capacity);
    this.keys[slot] = key;
    this.writeOwner(slot, index.id);
    this.writeSize(slot, bytes);
    index.assign(key, slot);
    this.#eviction.admit(slot);
    this.bytes += bytes;
    if (this.size++ === 0) this.onOccupied?.();
    return slot;
  }

  #replace(slot: number, bytes: number): number {
    this.#eviction.touch(slot);
    this.bytes -= this.sizeOf(slot);
    this.writeSize(slot, 0);
    this.#makeRoom(0, bytes, slot);
    this.writeSize(slot, bytes);
    this.bytes += bytes;
    return slot;
  }

  #makeRoom(entries: number, bytes: number, kept: number): void {
    while (this.size + entries > this.maxEntries || this.bytes + bytes > this.maxBytes) {
      const slot = this.#eviction.choose(kept);
      const key = this.keys[slot]!;
      const index = this.#indexes[this.#ownerOf(slot)]!;
      if (this.#isSpent(slot, this.#clock.coarse())) {
        this.#drop(slot, false);
      } else {
        this.#drop(slot, true);
        if (this.#onEvict !== undefined) this.#evicted.push({ index, key });
      }
    }
  }

  #tellEvicted(): void {
    const evicted = this.#evicted;
    this.#evicted = [];
    for (const { index, key } of evicted) this.#onEvict?.(index, key);
  }

  #sweep(slots: number, now: number): number {
    let reclaimed = 0;
    for (let left = Math.min(slots, this.used); left > 0 && this.size > 0; left--) {
      if (this.#sweepAt >= this.used) this.#sweepAt = 0;
      const slot = this.#sweepAt++;
      if (!this.#eviction.isOccupied(slot) || !this.#isSpent(slot, now)) continue;
      this.#drop(slot, false);
      reclaimed++;
    }
    return reclaimed;
  }

  #isSpent(slot: number, now: number): boolean {
    return this.staleUntilOf(slot) <= now || !this.seals[slot]!.isLive();
  }

  #ownerOf(slot: number): number {
    return this.owners === undefined ? 0 : this.owners[slot]!;
  }

  #drop(slot: number, evicted: boolean): void {
    const index = this.#indexes[this.#ownerOf(slot)]!;
    const key = this.keys[slot]!;
    if (evicted) index.delete(key);
    else index.park(key);
    this.#vacate(slot, evicted);
  }

  #vacate(slot: number, evicted: boolean): void {
    this.#eviction.leave(slot, evicted);
    this.bytes -= this.sizeOf(slot);
    this.release(slot);
    if (--this.size > 0) return;
    this.shrink();
    this.#eviction.reset();
    this.#eviction.fit(this.capacity);
  }
}
