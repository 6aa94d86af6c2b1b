// Finds the slot of a key: a hash table of slot numbers, open-addressed with linear probing. A Map would take 29 bytes per
// entry and inserts slowly; this takes 6 to 11. The page already says whether a key is present before its slot is looked
// up, so an equal hash is sufficient unless two entries share one; only then are keys compared. That saves a CPU cache
// miss per lookup. Each place also holds eight bits of the hash above the slot, so that few other rows are touched.
import { firstWord, HASH, type Rows } from "./rows.ts";

/** Enough for twice the maximum number of entries. */
const SLOT_BITS = 24;
const SLOT_MASK = 2 ** SLOT_BITS - 1;
/** Slots are stored plus one; 0 is an empty place. */
const EMPTY = 0;
const HIGHEST_LOAD = 3 / 4;

export class KeyIndex {
  readonly #rows: Rows<unknown>;
  /** Slots whose hash another entry has or had as well. */
  readonly #sharing = new Set<number>();
  #places = new Uint32Array(0);
  #mask = 0;
  #capacity = 0;

  constructor(rows: Rows<unknown>) {
    this.#rows = rows;
  }

  /** The slot of a key that its owner has. For an absent key: -1, or the slot of another key with the same hash. */
  find(key: string, owner: number, hash: number): number {
    const places = this.#places;
    const mask = this.#mask;
    const { words } = this.#rows;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const place = places[at]!;
      if (place === EMPTY) return -1;
      if ((place ^ hash) >>> SLOT_BITS !== 0) continue;
      const slot = (place & SLOT_MASK) - 1;
      if ((words[firstWord(slot) + HASH]! | 0) !== hash || this.#rows.ownerOf(slot) !== owner) continue;
      if (this.#sharing.size === 0 || !this.#sharing.has(slot) || this.#rows.keys[slot] === key) return slot;
    }
  }

  /**
   * A slot whose hash has the same high bits and begins nearby, without a look at its row: nearly always the slot of the key,
   * one in some hundred times another one; -1 if there is none.
   */
  guess(hash: number): number {
    const places = this.#places;
    const mask = this.#mask;
    for (let at = hash & mask; ; at = (at + 1) & mask) {
      const place = places[at]!;
      if (place === EMPTY) return -1;
      if ((place ^ hash) >>> SLOT_BITS === 0) return (place & SLOT_MASK) - 1;
    }
  }

  /** Something of the place of a hash, to have it read in time. */
  sample(hash: number): number {
    return this.#places[hash & this.#mask]!;
  }

  /** Adds a slot whose row is allocated. */
  add(slot: number): void {
    const places = this.#places;
    const mask = this.#mask;
    const { words } = this.#rows;
    const hash = words[firstWord(slot) + HASH]! | 0;
    let at = hash & mask;
    for (; places[at] !== EMPTY; at = (at + 1) & mask) {
      if ((places[at]! ^ hash) >>> SLOT_BITS !== 0) continue;
      const other = (places[at]! & SLOT_MASK) - 1;
      if ((words[firstWord(other) + HASH]! | 0) === hash) this.#sharing.add(other).add(slot);
    }
    places[at] = (hash & ~SLOT_MASK) | (slot + 1);
  }

  /** Removes a slot whose row is still intact. Displaced slots move back, so that no gap remains. */
  remove(slot: number): void {
    if (this.#sharing.size > 0) this.#sharing.delete(slot);
    const places = this.#places;
    const mask = this.#mask;
    let gap = this.#rows.hashOf(slot) & mask;
    while ((places[gap]! & SLOT_MASK) !== slot + 1) gap = (gap + 1) & mask;
    for (let at = (gap + 1) & mask; places[at] !== EMPTY; at = (at + 1) & mask) {
      const home = this.#rows.hashOf((places[at]! & SLOT_MASK) - 1) & mask;
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      places[gap] = places[at]!;
      gap = at;
    }
    places[gap] = EMPTY;
  }

  /** Resizes to the capacity of the rows. */
  fit(): void {
    const rows = this.#rows;
    if (rows.capacity === this.#capacity) return;
    this.#capacity = rows.capacity;
    const length = 2 ** Math.ceil(Math.log2(rows.capacity / HIGHEST_LOAD));
    this.#places = new Uint32Array(length);
    this.#sharing.clear();
    this.#mask = length - 1;
    for (let slot = 0; slot < rows.used; slot++) if (rows.isOccupied(slot)) this.add(slot);
  }
}
