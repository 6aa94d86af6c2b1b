// One array per field of an entry, one position per slot. Arrays begin small and double, so read them through the object.

const FIRST_CAPACITY = 256;
const NO_SLOT = -1;

type Numbers = Float64Array | Uint32Array | Uint16Array;

function grownNumbers<T extends Numbers>(column: T, capacity: number): T {
  const grown = new (column.constructor as new (length: number) => T)(capacity);
  grown.set(column);
  return grown;
}

function grownList<T>(column: readonly (T | undefined)[], capacity: number): (T | undefined)[] {
  // Filled first: it settles on the kind of array that holds anything, whatever the first value is.
  const grown = new Array<T | undefined>(capacity).fill(undefined);
  for (let slot = 0; slot < column.length; slot++) grown[slot] = column[slot];
  return grown;
}

/** The columns and the list of free slots. Those that many stores never use appear when first written. */
export class Columns<S> {
  values: unknown[] = [];
  seals: (S | undefined)[] = [];
  /** Milliseconds of the clock; Infinity for never. In a free slot: the next free one. */
  expires = new Float64Array(0);
  protected capacity = 0;
  protected keys: (string | undefined)[] = [];
  protected staleUntil: Float64Array | undefined;
  protected sizes: Uint32Array | undefined;
  protected owners: Uint16Array | Uint32Array | undefined;
  /** Slots from here on were never used. */
  protected used = 0;
  /** Whole seconds since the epoch. */
  #created = new Uint32Array(0);
  #free = NO_SLOT;
  readonly #mostSlots: number;

  constructor(mostSlots: number) {
    this.#mostSlots = mostSlots;
    this.#growTo(Math.min(FIRST_CAPACITY, mostSlots));
  }

  /** When the entry stops being of use even as a stale answer; at least its expiry. */
  staleUntilOf(slot: number): number {
    return (this.staleUntil ?? this.expires)[slot]!;
  }

  /** When the entry was written, rounded down to the second. */
  createdOf(slot: number): number {
    return this.#created[slot]! * 1_000;
  }

  protected sizeOf(slot: number): number {
    return this.sizes === undefined ? 0 : this.sizes[slot]!;
  }

  protected writeTimes(slot: number, created: number, expires: number, staleUntil: number): void {
    this.#created[slot] = created / 1_000;
    this.expires[slot] = expires;
    if (this.staleUntil === undefined) {
      if (staleUntil === expires) return;
      this.staleUntil = this.expires.slice();
    }
    this.staleUntil[slot] = staleUntil;
  }

  protected writeSize(slot: number, bytes: number): void {
    if (this.sizes === undefined) {
      if (bytes === 0) return;
      this.sizes = new Uint32Array(this.capacity);
    }
    this.sizes[slot] = bytes;
  }

  protected writeOwner(slot: number, id: number): void {
    if (this.owners === undefined) {
      if (id === 0) return;
      this.owners = new Uint16Array(this.capacity);
    }
    if (id > 0xffff && this.owners instanceof Uint16Array) this.owners = Uint32Array.from(this.owners);
    this.owners[slot] = id;
  }

  /** A slot to write to. There must be fewer entries than the most allowed. */
  protected allocate(): number {
    const slot = this.#free;
    if (slot !== NO_SLOT) {
      this.#free = this.expires[slot]!;
      return slot;
    }
    if (this.used === this.capacity) this.#growTo(Math.min(this.capacity * 2, this.#mostSlots));
    return this.used++;
  }

  protected release(slot: number): void {
    this.values[slot] = undefined;
    this.keys[slot] = undefined;
    this.seals[slot] = undefined;
    this.expires[slot] = this.#free;
    this.#free = slot;
  }

  /** Returns to the first capacity; only while nothing is stored. */
  protected shrink(): void {
    this.#free = NO_SLOT;
    this.used = 0;
    if (this.capacity <= FIRST_CAPACITY) return;
    this.values = [];
    this.keys = [];
    this.seals = [];
    this.expires = new Float64Array(0);
    this.#created = new Uint32Array(0);
    this.staleUntil = undefined;
    this.sizes = undefined;
    this.owners = undefined;
    this.#growTo(Math.min(FIRST_CAPACITY, this.#mostSlots));
  }

  #growTo(capacity: number): void {
    this.capacity = capacity;
    this.values = grownList(this.values, capacity);
    this.keys = grownList(this.keys, capacity);
    this.seals = grownList(this.seals, capacity);
    this.expires = grownNumbers(this.expires, capacity);
    this.#created = grownNumbers(this.#created, capacity);
    if (this.staleUntil !== undefined) this.staleUntil = grownNumbers(this.staleUntil, capacity);
    if (this.sizes !== undefined) this.sizes = grownNumbers(this.sizes, capacity);
    if (this.owners !== undefined) this.owners = grownNumbers(this.owners, capacity);
  }
}
