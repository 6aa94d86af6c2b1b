// The keys of one namespace with their slots.
//
// V8's Map leaves a deleted entry in the chain of its bucket until the whole table is rebuilt, so a key that is set and
// deleted over and over would make every miss on it walk all its former entries. A key that leaves by itself is
// therefore parked: it stays in the Map without a slot, and parked keys are deleted together when there are enough.

const PARKED = -1;
/** How many keys may be parked: these and one in so many of the keys. */
const FEWEST_PARKED = 64;
const KEYS_PER_PARKED = 64;

/** Everyone may read it; only Slots writes. A slot number is good until the next `put`, `remove` or `sweep`. */
export class SlotIndex {
  readonly id: number;
  size = 0;
  readonly #slots = new Map<string, number>();
  /** The keys that were parked; some may have a slot again. */
  readonly #parked = new Set<string>();

  constructor(id: number) {
    this.id = id;
  }

  get(key: string): number | undefined {
    const slot = this.#slots.get(key);
    return slot === PARKED ? undefined : slot;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /**
   * Meets every key that is there from beginning to end, whatever is added or removed meanwhile, and ends in any case:
   * a Map is walked in the order of insertion, so what was there comes before what is added.
   */
  *[Symbol.iterator](): IterableIterator<[key: string, slot: number]> {
    let left = this.#slots.size;
    for (const pair of this.#slots) {
      if (left-- === 0) return;
      if (pair[1] !== PARKED) yield pair;
    }
  }

  /** See the iteration over pairs. */
  *keys(): IterableIterator<string> {
    for (const [key] of this) yield key;
  }

  /** Gives a key that has no slot one. */
  assign(key: string, slot: number): void {
    this.#slots.set(key, slot);
    this.size++;
  }

  /** Takes the slot of a key that may well come back. */
  park(key: string): void {
    if (this.size === 1) {
      this.clear();
      return;
    }
    this.size--;
    this.#slots.set(key, PARKED);
    this.#parked.add(key);
    if (this.#parked.size > FEWEST_PARKED + this.#slots.size / KEYS_PER_PARKED) this.#deleteParked();
  }

  delete(key: string): void {
    this.#slots.delete(key);
    this.size--;
  }

  clear(): void {
    this.#slots.clear();
    this.#parked.clear();
    this.size = 0;
  }

  #deleteParked(): void {
    for (const key of this.#parked) if (this.#slots.get(key) === PARKED) this.#slots.delete(key);
    this.#parked.clear();
  }
}
