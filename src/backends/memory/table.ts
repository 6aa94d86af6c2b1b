// The bounded in-process table under the memory backend and the near tier: pages hold the values, the table keeps a row
// per entry and bounds entries and bytes over all pages.
import { type Clock, NEAR_EXPIRY_MS } from "../../core/clock.ts";
import { Eviction } from "./eviction/eviction.ts";
import { Evictions } from "./eviction/evictions.ts";
import { Sampling } from "./eviction/sampling.ts";
import { UseLog } from "./eviction/use-log.ts";
import { Reclaim } from "./expiry/reclaim.ts";
import { Schedule } from "./expiry/schedule.ts";
import { Box, FURTHEST, heldValue, isBox, NO_SLOT } from "./layout/box.ts";
import { KeyHash } from "./layout/key-hash.ts";
import { KeyIndex } from "./layout/key-index.ts";
import type { Page, PageHost } from "./layout/page.ts";
import { Pages } from "./layout/pages.ts";
import { Rows } from "./layout/rows.ts";

/** The tags or stamps of an entry, checked on every hit. A sweep reclaims entries that are not live. */
export interface EntryTags {
  isLive(): boolean;
  /** Called on every hit. */
  used?(): void;
  /** Called when an entry starts and stops referring to it. */
  retain?(): void;
  release?(): void;
}

export interface TableOptions {
  /** Most entries, over all pages. */
  readonly maxEntries: number;
  /** Most bytes over all pages, as passed to `put`; Infinity for no bound. A function is called when the bound is needed. */
  readonly maxBytes: number | (() => number);
  readonly clock: Clock;
  /** Called for entries evicted while live, once the table is consistent again; not for expired or dead ones. */
  readonly onEvict?: (page: Page, key: string) => void;
}

/** An entry, fresh or not. */
export interface Held<S> {
  readonly value: unknown;
  readonly tagSet: S | undefined;
  /** Milliseconds of the clock; Infinity for never. */
  readonly expires: number;
  /** Until when it may be served stale; at least `expires`. */
  readonly staleUntil: number;
}

/** One in this many hits on boxes unboxes the value: an entry read more often than written needs no box. */
const HITS_PER_UNBOXING = 16;
/** Hits are recorded from this share of a bound on: before, nothing is evicted. */
const NEARLY_FULL = 7 / 8;
/** One in this many entries may have a use that the eviction policy does not know yet. */
const ENTRIES_PER_PENDING_USE = 256;
/** The most that fits into a row; a larger entry counts as this much. */
const MOST_BYTES = 0xffff_ffff;

export class Table<S extends EntryTags> implements PageHost {
  readonly clock: Clock;
  readonly maxEntries: number;
  /** Whether there is a bound on bytes. */
  readonly countsBytes: boolean;
  /** Entries stored, including expired, dead and cleared ones that are not reclaimed yet. */
  size = 0;
  /** Sum of their bytes; 0 without a bound on bytes. */
  bytes = 0;
  unchecked = 0;
  /** Whether hits are recorded for the eviction policy. */
  recordsUses = false;
  /** What `#fetch` has read: it must go somewhere, or the compiler omits the reads. */
  fetched = 0;
  /** Called when `needsTending` becomes true; undefined while no sweeper runs. */
  onOccupied: (() => void) | undefined;
  /**
   * A sweeper turns the wheel in time while the event loop runs. A process that only serves hits blocks the loop, so the
   * clock is checked after this many.
   */
  readonly #uncheckedHits: number;
  #maxBytes: number | (() => number);
  /** Whether entries have more than an expiry; if not, overwriting one changes only its box. */
  #hasExtras: boolean;
  readonly #onEvict: ((page: Page, key: string) => void) | undefined;
  readonly #rows: Rows<S>;
  readonly #index: KeyIndex;
  readonly #hash: KeyHash;
  readonly #pages = new Pages();
  readonly #schedule: Schedule;
  readonly #eviction: Eviction;
  readonly #reclaim: Reclaim<S>;
  readonly #uses = new UseLog();
  readonly #sampling: Sampling;
  readonly #hashes: Int32Array;
  /** How many recorded uses the eviction policy may not know yet when it chooses. */
  readonly #mostPending: number;
  readonly #evicted = new Evictions();
  #latestExpiry = 0;
  /** The latest reading of the clock for hits that pass, and how many hits it still answers for. */
  #reading = 0;
  #answers = 0;
  #hitsOnBoxes = 0;

  constructor(options: TableOptions) {
    this.clock = options.clock;
    this.#uncheckedHits = (options.clock.hitsPerReading ?? 1) - 1;
    this.#sampling = new Sampling(this.#uncheckedHits > 0);
    this.maxEntries = options.maxEntries;
    this.#maxBytes = options.maxBytes;
    this.countsBytes = options.maxBytes !== Number.POSITIVE_INFINITY;
    this.#hasExtras = this.countsBytes;
    this.#onEvict = options.onEvict;
    this.#hashes = new Int32Array(this.#uses.most);
    this.#mostPending = Math.min(this.#uses.most, Math.floor(options.maxEntries / ENTRIES_PER_PENDING_USE));
    const rows = new Rows<S>(options.maxEntries);
    this.#rows = rows;
    this.#index = new KeyIndex(rows);
    this.#hash = new KeyHash(() => options.clock.token());
    this.#schedule = new Schedule({
      rows,
      clock: options.clock,
      pages: this.#pages,
      reclaim: (slot) => this.#drop(slot, false),
      started: () => this.onOccupied?.(),
    });
    this.#reclaim = new Reclaim({
      rows,
      index: this.#index,
      hash: this.#hash,
      pages: this.#pages,
      schedule: this.#schedule,
      clock: options.clock,
      drop: (slot) => this.#drop(slot, false),
    });
    this.#eviction = new Eviction({
      hashOf: (slot) => rows.hashOf(slot) >>> 0,
      isSpent: (slot) => this.#reclaim.isSpent(slot, this.clock.coarse()),
    });
    this.#fitRows();
  }

  openPage(): Page {
    return this.#pages.open(this);
  }

  /** Empties a page at once; its entries are reclaimed gradually. */
  clear(page: Page): void {
    if (page.size === 0) return;
    this.#pages.retire(page);
    this.onOccupied?.();
  }

  get maxBytes(): number {
    if (typeof this.#maxBytes === "function") this.#maxBytes = this.#maxBytes();
    return this.#maxBytes;
  }

  get horizon(): number {
    return this.#schedule.horizon;
  }

  checkedValue(page: Page, key: string, held: unknown): unknown {
    const isBoxed = isBox(held);
    if (!isBoxed && this.#isBeforeHorizon()) {
      if (this.#isRecorded()) this.recordUse(page, key);
      return held;
    }
    const slot = isBoxed && this.#rows.tagSets === undefined ? held.slot : this.#slotOf(page, key, held);
    const tagSet = this.#rows.tagSetOf(slot);
    if (tagSet?.isLive() === false) return undefined;
    const expires = isBoxed ? held.expires : this.#rows.expiresOf(slot);
    if (expires - this.clock.coarse() <= NEAR_EXPIRY_MS && this.clock.now() >= expires) return undefined;
    tagSet?.used?.();
    if (isBoxed) this.#sampleUse(page, key);
    else if (this.recordsUses) this.recordUse(page, key);
    if (!isBoxed) return held;
    if (++this.#hitsOnBoxes % HITS_PER_UNBOXING === 0) this.#unbox(page, key, held);
    return held.value;
  }

  /** Whether hits may go by without a look at the clock or the log. A method: V8 looks a private getter up for every call. */
  #mayPass(): boolean {
    return this.onOccupied !== undefined && (!this.recordsUses || this.#sampling.isSparse);
  }

  /** Whether every unboxed value is fresh. While hits may pass, one reading of the clock answers for several. */
  #isBeforeHorizon(): boolean {
    if (!this.#mayPass()) {
      this.#reading = this.clock.coarse();
      this.#answers = 0;
    } else if (this.#answers <= 0) {
      this.#reading = this.clock.now();
      this.#answers = this.#uncheckedHits + 1;
    }
    if (this.#reading < this.horizon) return true;
    this.#answers = 0;
    this.unchecked = 0;
    return false;
  }

  /** Whether to record a hit on an unboxed value; also decides how many of the next pass. */
  #isRecorded(): boolean {
    if (!this.#mayPass()) {
      this.unchecked = 0;
      return this.recordsUses;
    }
    const isTaken = this.recordsUses && this.#sampling.takes();
    const most = this.#answers - 1;
    this.unchecked = this.recordsUses ? this.#sampling.pass(most) : most;
    this.#answers = most - this.unchecked;
    return isTaken;
  }

  /** Records one of the uses that reach the table anyway, as often as one of the others. */
  #sampleUse(page: Page, key: string): void {
    if (!this.recordsUses || --this.unchecked >= 0) return;
    this.unchecked = 0;
    if (!this.#mayPass() || this.#sampling.takes()) this.recordUse(page, key);
  }

  recordUse(page: Page, key: string): void {
    this.#uses.add(key, page.number);
    if (this.#uses.isFull) this.#applyUses();
  }

  /** The entry if its tags are live. */
  find(page: Page, key: string): Held<S> | undefined {
    const entry = this.sight(page, key);
    return entry?.tagSet?.isLive() === false ? undefined : entry;
  }

  /** The entry, also if its tags have been invalidated. */
  sight(page: Page, key: string): Held<S> | undefined {
    const held = page.held(key);
    if (held === undefined) return undefined;
    const slot = this.#slotOf(page, key, held);
    const tagSet = this.#rows.tagSetOf(slot);
    const expires = this.#expiresOf(slot, held);
    return {
      value: heldValue(held),
      tagSet,
      expires,
      staleUntil: Math.max(expires, this.#rows.staleUntilOf(slot)),
    };
  }

  /**
   * Overwrites an existing entry without tags or stale time if that changes only its box, which is far cheaper than `put`.
   * Returns false if `put` must be called.
   */
  renew(page: Page, key: string, value: unknown, until: number): boolean {
    if (this.#hasExtras) return false;
    const held = page.held(key);
    if (held === undefined) return false;
    const isDone = isBox(held) ? held.renew(value, until) : this.#box(page, key, value, until);
    if (isDone) this.#sampleUse(page, key);
    return isDone;
  }

  /**
   * Stores an entry, replacing the key's current one, and evicts others if needed. The value must not be undefined.
   * `until` is a time of the clock; for `staleMs` after it the value may be served stale.
   * Returns false if the entry alone exceeds `maxBytes`: then the key has no entry, and nothing was evicted.
   */
  put(
    page: Page,
    key: string,
    value: unknown,
    tagSet: S | undefined,
    until: number,
    staleMs = 0,
    bytes = 0,
  ): boolean {
    const held = page.held(key);
    // With the precision of a box.
    const expires = until < FURTHEST ? Math.floor(until) : Number.POSITIVE_INFINITY;
    const staleUntil = expires + staleMs;
    const counted = this.countsBytes ? Math.min(Math.ceil(bytes), MOST_BYTES) : 0;
    if (counted > this.maxBytes) {
      this.remove(page, key);
      return false;
    }
    // Before any eviction: the evicted entry may be the last one that refers to the same tag set.
    tagSet?.retain?.();
    if (held === undefined) this.#insert(page, key, value, tagSet, expires, staleUntil, counted);
    else this.#overwrite(page, key, held, value, tagSet, expires, staleUntil, counted);
    if (!this.#evicted.isEmpty) this.#notifyEvicted();
    return true;
  }

  /** Whether an optional entry should not be stored; see Eviction. */
  declines(page: Page, key: string): boolean {
    // Its size is not known yet.
    const usual = this.size === 0 ? 0 : this.bytes / this.size;
    const hasRoom = this.size < this.maxEntries && this.bytes + usual <= this.maxBytes;
    if (hasRoom || this.#pages.hasRetired || page.held(key) !== undefined) return false;
    this.#applyUses();
    return this.#eviction.declines(this.#hash.of(key, page.number) >>> 0);
  }

  /** Returns whether there was an entry, expired and dead ones included. */
  remove(page: Page, key: string): boolean {
    const held = page.held(key);
    if (held === undefined) return false;
    this.#drop(this.#slotOf(page, key, held), false);
    return true;
  }

  /** Whether entries may have to be boxed or reclaimed in the background. */
  get needsTending(): boolean {
    return this.#reclaim.isNeeded;
  }

  /** Processes due entries and those of cleared pages, at most this many. Returns whether all are done. */
  turn(most: number): boolean {
    return this.#reclaim.turn(most, this.clock.now());
  }

  /** Slots that a sweep for dead entries covers: 0 while no entry has tags. */
  get sweepLength(): number {
    return this.#reclaim.sweepLength;
  }

  /** Examines this many slots, continuing after the last call, and reclaims dead entries. Returns how many. */
  sweep(slots: number): number {
    return this.#reclaim.sweep(slots, this.clock.now());
  }

  #slotOf(page: Page, key: string, held: unknown): number {
    if (isBox(held) && held.slot !== NO_SLOT) return held.slot;
    const slot = this.#index.find(key, page.number, this.#hash.of(key, page.number));
    if (isBox(held)) held.slot = slot;
    return slot;
  }

  /** The row of a boxed entry may have an earlier expiry, never a later one. */
  #expiresOf(slot: number, held: unknown): number {
    return isBox(held) ? held.expires : this.#rows.expiresOf(slot);
  }

  /** Replaces an unboxed value by a boxed one. Returns false if it may expire before the unboxed one. */
  #box(page: Page, key: string, value: unknown, expires: number): boolean {
    if (expires < this.#latestExpiry) return false;
    this.#latestExpiry = expires;
    page.replace(key, new Box(value, NO_SLOT, expires));
    return true;
  }

  #unbox(page: Page, key: string, box: Box): void {
    const { expires, value } = box;
    const slot = this.#slotOf(page, key, box);
    if (this.#rows.tagSetOf(slot) !== undefined || !this.#schedule.canBePlain(expires)) return;
    const staleUntil = Math.max(expires, this.#rows.staleUntilOf(slot));
    this.#latestExpiry = Math.max(this.#latestExpiry, expires);
    this.#rows.writeTimes(slot, expires, staleUntil);
    this.#schedule.set(slot, expires, staleUntil, true);
    page.replace(key, value);
  }

  #insert(
    page: Page,
    key: string,
    value: unknown,
    tagSet: S | undefined,
    expires: number,
    staleUntil: number,
    bytes: number,
  ): void {
    this.#reclaim.onInsertion();
    this.#sampling.inserted();
    const hash = this.#hash.of(key, page.number);
    if (this.size === this.maxEntries) this.#fetch(hash);
    this.#makeRoom(1, bytes, NO_SLOT, hash >>> 0);
    if (this.#rows.reserve()) this.#fitRows();
    const plain = tagSet === undefined && this.#schedule.canBePlain(expires);
    const box = plain ? undefined : new Box(value, NO_SLOT, expires);
    // First, because a Map can throw when it is full: then nothing else has changed.
    page.add(key, box ?? value);
    const slot = this.#rows.allocate(key, hash, page.number);
    if (box !== undefined) box.slot = slot;
    this.#index.add(slot);
    this.#eviction.admit(slot);
    this.size++;
    this.#rows.writeSize(slot, bytes);
    this.#count(bytes);
    this.#write(slot, tagSet, expires, staleUntil, plain);
  }

  #overwrite(
    page: Page,
    key: string,
    held: unknown,
    value: unknown,
    tagSet: S | undefined,
    expires: number,
    staleUntil: number,
    bytes: number,
  ): void {
    const slot = this.#slotOf(page, key, held);
    if (this.recordsUses) this.#eviction.touch(slot);
    if (isBox(held)) held.renew(value, expires);
    else page.replace(key, new Box(value, slot, expires));
    this.#write(slot, tagSet, expires, staleUntil, false);
    const before = this.#rows.sizeOf(slot);
    if (before === bytes) return;
    this.#rows.writeSize(slot, 0);
    this.#count(-before);
    this.#makeRoom(0, bytes, slot);
    this.#rows.writeSize(slot, bytes);
    this.#count(bytes);
  }

  #write(slot: number, tagSet: S | undefined, expires: number, staleUntil: number, plain: boolean): void {
    const rows = this.#rows;
    this.#latestExpiry = Math.max(this.#latestExpiry, expires);
    rows.writeTimes(slot, expires, staleUntil);
    this.#schedule.set(slot, expires, staleUntil, plain);
    const isFirstTagSet = tagSet !== undefined && rows.tagSets === undefined;
    const tagSetBefore = rows.tagSetOf(slot);
    rows.writeTagSet(slot, tagSet);
    tagSetBefore?.release?.();
    this.#hasExtras = this.countsBytes || rows.tagSets !== undefined || rows.staleUntil !== undefined;
    if (isFirstTagSet) this.onOccupied?.();
  }

  #count(bytes: number): void {
    this.bytes += bytes;
    const isNearlyFull =
      this.size >= this.maxEntries * NEARLY_FULL ||
      (this.countsBytes && this.bytes >= this.maxBytes * NEARLY_FULL);
    if (isNearlyFull === this.recordsUses) return;
    this.recordsUses = isNearlyFull;
    this.unchecked = 0;
  }

  #makeRoom(entries: number, bytes: number, kept: number, arriving?: number): void {
    while (this.size + entries > this.maxEntries || this.bytes + bytes > this.maxBytes) {
      if (this.#reclaim.retired(1) > 0) continue;
      if (this.#uses.length >= this.#mostPending) this.#applyUses();
      const slot = this.#eviction.choose(kept, arriving);
      const isSpent = this.#reclaim.isSpent(slot, this.clock.coarse());
      if (!isSpent && this.#onEvict !== undefined) {
        this.#evicted.add(this.#pages.at(this.#rows.ownerOf(slot))!, this.#rows.keys[slot]!);
      }
      this.#drop(slot, !isSpent);
    }
  }

  #notifyEvicted(): void {
    for (let evicted = this.#evicted.take(); evicted !== undefined; evicted = evicted.next) {
      this.#onEvict?.(evicted.page, evicted.key);
    }
  }

  /** Reads what an insertion into a full table is about to read one after the other: the CPU waits for all of it once. */
  #fetch(hash: number): void {
    const slot = this.#eviction.likely;
    const other = slot < 0 ? hash : this.#rows.hashOf(slot);
    this.fetched =
      this.#index.sample(hash) ^
      this.#eviction.sample(hash >>> 0) ^
      this.#index.sample(other) ^
      this.#eviction.sample(other >>> 0);
  }

  /** Hashes all keys first: the lookups that follow do not depend on each other, so that the CPU waits for memory once. */
  #applyUses(): void {
    const uses = this.#uses.length;
    if (uses === 0) return;
    const hits = this.#sampling.recorded(uses);
    const hashes = this.#hashes;
    let at = 0;
    this.#uses.drain((key, number) => {
      hashes[at++] = this.#hash.of(key, number);
    });
    for (at = 0; at < uses; at++) {
      const slot = this.#index.guess(hashes[at]!);
      if (slot >= 0) this.#eviction.touch(slot, hits);
    }
  }

  #drop(slot: number, evicted: boolean): void {
    this.#eviction.leave(slot, evicted);
    const page = this.#pages.at(this.#rows.ownerOf(slot));
    const key = this.#rows.keys[slot]!;
    if (evicted) page?.delete(key);
    else page?.park(key);
    this.#index.remove(slot);
    this.#schedule.forget(slot);
    this.size--;
    this.#count(-this.#rows.sizeOf(slot));
    const tagSet = this.#rows.tagSetOf(slot);
    this.#rows.release(slot);
    tagSet?.release?.();
    if (this.size === 0) this.#reset();
  }

  #reset(): void {
    this.#rows.reset();
    this.#eviction.reset();
    this.#fitRows();
    this.#pages.forgetRetired();
    this.#schedule.updateHorizon();
    this.#latestExpiry = 0;
    this.#hasExtras = this.countsBytes;
  }

  #fitRows(): void {
    this.#index.fit();
    this.#eviction.fit(this.#rows.capacity);
  }
}
