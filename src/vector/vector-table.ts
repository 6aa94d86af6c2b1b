// Vectors by key in one contiguous array. Slots never move, so a search may pause while vectors are added and removed.

export class VectorTable {
  readonly dimensions: number;
  /** Slot after slot; replaced by a larger array when full. */
  rows: Float32Array;
  /** By slot; undefined if it is free. */
  readonly keys: (string | undefined)[] = [];
  /** By slot: the sequence number of its vector. */
  readonly #orders: number[] = [];
  /** Oldest first. */
  readonly #slots = new Map<string, number>();
  readonly #free: number[] = [];
  #order = 0;

  constructor(dimensions: number) {
    this.dimensions = dimensions;
    this.rows = new Float32Array(dimensions * 64);
  }

  get size(): number {
    return this.#slots.size;
  }

  /** The order of the latest vector. */
  get order(): number {
    return this.#order;
  }

  has(key: string): boolean {
    return this.#slots.has(key);
  }

  orderOf(slot: number): number {
    return this.#orders[slot] ?? 0;
  }

  slotOf(key: string): number | undefined {
    return this.#slots.get(key);
  }

  [Symbol.iterator](): IterableIterator<[key: string, slot: number]> {
    return this.#slots.entries();
  }

  oldest(): string | undefined {
    return this.#slots.keys().next().value;
  }

  /** Returns its slot. An existing key is replaced and becomes the youngest. */
  set(key: string, vector: Float32Array): number {
    const slot = this.#slots.get(key) ?? this.#free.pop() ?? this.keys.length;
    if ((slot + 1) * this.dimensions > this.rows.length) this.#grow();
    this.rows.set(vector, slot * this.dimensions);
    this.#slots.delete(key);
    this.#slots.set(key, slot);
    this.keys[slot] = key;
    this.#orders[slot] = ++this.#order;
    return slot;
  }

  delete(key: string): number | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    this.#slots.delete(key);
    this.keys[slot] = undefined;
    this.#free.push(slot);
    return slot;
  }

  row(slot: number): Float32Array {
    return this.rows.subarray(slot * this.dimensions, (slot + 1) * this.dimensions);
  }

  #grow(): void {
    const vectors = this.rows.length / this.dimensions;
    const rows = new Float32Array(Math.ceil(vectors * 1.5) * this.dimensions);
    rows.set(this.rows);
    this.rows = rows;
  }
}
