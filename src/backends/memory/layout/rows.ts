// The metadata of every entry: its key, and a row of 24 bytes, so that a write touches one cache line, at times two.
// The arrays are replaced when they grow: always read them through the object.

/** Words of a row; the first two are the expiry, a double. */
const WORDS = 6;
export const HASH = 2;
/** The last three belong to the timing wheel; see wheel.ts. In a free row NEXT is the next free slot plus one. */
export const PREVIOUS = 3;
export const NEXT = 4;
export const TICK = 5;

const FIRST_CAPACITY = 256;
const NO_SLOT = -1;

export const firstWord = (slot: number): number => slot * WORDS;

/** The columns that many stores never use are allocated on first use: tag sets, stale times, sizes, and pages but the first. */
export class Rows<S> {
  words = new Uint32Array(0);
  keys: (string | undefined)[] = [];
  tagSets: (S | undefined)[] | undefined;
  /** Until when entries may be served stale; undefined while no entry may be. */
  staleUntil: Float64Array | undefined;
  #sizes: Uint32Array | undefined;
  #owners: Uint32Array | undefined;
  capacity = 0;
  /** Slots from here on were never used. */
  used = 0;
  #times = new Float64Array(0);
  #free = NO_SLOT;
  readonly #mostSlots: number;

  constructor(mostSlots: number) {
    this.#mostSlots = mostSlots;
    this.#resize(Math.min(FIRST_CAPACITY, mostSlots));
  }

  isOccupied(slot: number): boolean {
    return this.keys[slot] !== undefined;
  }

  /** 32 bits, signed. */
  hashOf(slot: number): number {
    return this.words[slot * WORDS + HASH]! | 0;
  }

  /** The number of the entry's page. */
  ownerOf(slot: number): number {
    return this.#owners === undefined ? 0 : this.#owners[slot]!;
  }

  sizeOf(slot: number): number {
    return this.#sizes === undefined ? 0 : this.#sizes[slot]!;
  }

  /** Milliseconds of the clock; Infinity for never. */
  expiresOf(slot: number): number {
    return this.#times[slot * (WORDS / 2)]!;
  }

  staleUntilOf(slot: number): number {
    return this.staleUntil === undefined ? this.expiresOf(slot) : this.staleUntil[slot]!;
  }

  tagSetOf(slot: number): S | undefined {
    return this.tagSets === undefined ? undefined : this.tagSets[slot];
  }

  writeSize(slot: number, bytes: number): void {
    if (this.#sizes === undefined) {
      if (bytes === 0) return;
      this.#sizes = new Uint32Array(this.capacity);
    }
    this.#sizes[slot] = bytes;
  }

  writeTimes(slot: number, expires: number, staleUntil: number): void {
    this.#times[slot * (WORDS / 2)] = expires;
    if (this.staleUntil === undefined) {
      if (staleUntil === expires) return;
      this.staleUntil = new Float64Array(this.capacity);
      for (let at = 0; at < this.used; at++) this.staleUntil[at] = this.expiresOf(at);
    }
    this.staleUntil[slot] = staleUntil;
  }

  writeTagSet(slot: number, tagSet: S | undefined): void {
    if (this.tagSets === undefined) {
      if (tagSet === undefined) return;
      this.tagSets = new Array<S | undefined>(this.capacity).fill(undefined);
    }
    this.tagSets[slot] = tagSet;
  }

  /** Makes sure that a row is free; returns whether the arrays grew. The table must not be full. */
  reserve(): boolean {
    if (this.#free !== NO_SLOT || this.used < this.capacity) return false;
    this.#resize(Math.min(this.capacity * 2, this.#mostSlots));
    return true;
  }

  /** A row for the key; see `reserve`. */
  allocate(key: string, hash: number, owner: number): number {
    let slot = this.#free;
    if (slot === NO_SLOT) slot = this.used++;
    else this.#free = this.words[slot * WORDS + NEXT]! - 1;
    this.keys[slot] = key;
    this.words[slot * WORDS + HASH] = hash;
    if (owner !== 0) this.#owners ??= new Uint32Array(this.capacity);
    if (this.#owners !== undefined) this.#owners[slot] = owner;
    return slot;
  }

  release(slot: number): void {
    this.keys[slot] = undefined;
    if (this.tagSets !== undefined) this.tagSets[slot] = undefined;
    this.words[slot * WORDS + NEXT] = this.#free + 1;
    this.#free = slot;
  }

  /** Shrinks to the first capacity; only while nothing is stored. */
  reset(): void {
    this.#free = NO_SLOT;
    this.used = 0;
    this.tagSets = undefined;
    this.staleUntil = undefined;
    this.#sizes = undefined;
    this.#owners = undefined;
    if (this.capacity <= FIRST_CAPACITY) return;
    this.keys = [];
    this.#resize(Math.min(FIRST_CAPACITY, this.#mostSlots));
  }

  #resize(capacity: number): void {
    const bytes = new ArrayBuffer(capacity * WORDS * Uint32Array.BYTES_PER_ELEMENT);
    const words = new Uint32Array(bytes);
    words.set(this.words.subarray(0, this.used * WORDS));
    this.words = words;
    this.#times = new Float64Array(bytes);
    this.keys = resizedList(this.keys, capacity);
    if (this.tagSets !== undefined) this.tagSets = resizedList(this.tagSets, capacity);
    if (this.staleUntil !== undefined) {
      const staleUntil = new Float64Array(capacity);
      staleUntil.set(this.staleUntil);
      this.staleUntil = staleUntil;
    }
    if (this.#sizes !== undefined) this.#sizes = resizedColumn(this.#sizes, capacity);
    if (this.#owners !== undefined) this.#owners = resizedColumn(this.#owners, capacity);
    this.capacity = capacity;
  }
}

function resizedColumn(column: Uint32Array, capacity: number): Uint32Array {
  const resized = new Uint32Array(capacity);
  resized.set(column);
  return resized;
}

function resizedList<T>(list: readonly (T | undefined)[], capacity: number): (T | undefined)[] {
  // Filled first, so that V8 chooses the generic elements kind, whatever the first value is.
  const resized = new Array<T | undefined>(capacity).fill(undefined);
  for (let slot = 0; slot < list.length; slot++) resized[slot] = list[slot];
  return resized;
}
