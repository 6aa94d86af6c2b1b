// A map of the keys that are in use at a moment, usually one at most. That one is in a field: V8 allocates a new table
// whenever the last entry of a Map is deleted, which costs more than all the rest.

export class FewKeys<V> {
  #key: string | undefined;
  #value: V | undefined;
  readonly #others = new Map<string, V>();

  get(key: string): V | undefined {
    if (key === this.#key) return this.#value;
    return this.#others.size === 0 ? undefined : this.#others.get(key);
  }

  /** The value must not be undefined. */
  set(key: string, value: V): void {
    const isOther = this.#key !== undefined && key !== this.#key;
    if (isOther || (this.#others.size > 0 && this.#others.has(key))) {
      this.#others.set(key, value);
      return;
    }
    this.#key = key;
    this.#value = value;
  }

  delete(key: string): void {
    if (key !== this.#key) {
      this.#others.delete(key);
      return;
    }
    this.#key = undefined;
    this.#value = undefined;
  }

  *values(): IterableIterator<V> {
    if (this.#value !== undefined) yield this.#value;
    yield* this.#others.values();
  }
}
