// The entries of one namespace: a Map that holds the values themselves, so that a hit is one lookup.
//
// V8's Map leaves a deleted entry in the chain of its bucket until the whole table is rebuilt, so every miss on a key that
// is set and deleted repeatedly would walk all its former entries. A key that expires or is deleted is therefore parked:
// it stays in the Map without a value, and parked keys are deleted together once there are enough of them.
import { MOST_ENTRIES } from "../../../core/backend-options.ts";
import { isBox } from "./box.ts";
import { type KeyName, nameOf } from "./key-name.ts";

/** What a page needs of its table. */
export interface PageHost {
  /** How many hits on unboxed values need no further check; the page counts down. */
  unchecked: number;
  /** The value of `held` if it is fresh, else undefined. Records the use. */
  checkedValue(page: Page, key: string, held: unknown): unknown;
}

/** Most parked keys: this many, plus one per KEYS_PER_PARKED keys. */
const FEWEST_PARKED = 64;
const KEYS_PER_PARKED = 64;

/** Only its table may write to it. */
export class Page {
  /** Identifies the page in the rows of its entries; changes with `retire`. */
  number = 0;
  readonly #host: PageHost;
  /** Values and boxes; undefined for a parked key. */
  #entries = new Map<KeyName, unknown>();
  readonly #parked = new Set<KeyName>();
  /** The keys stored under a digest. */
  #longKeys = new Map<KeyName, string>();

  constructor(host: PageHost) {
    this.#host = host;
  }

  get size(): number {
    return this.#entries.size - this.#parked.size;
  }

  /** The value under the key if it is fresh, else undefined. Records the use. */
  peek(key: string): unknown {
    const held = this.#entries.get(nameOf(key));
    if (held === undefined) return undefined;
    const host = this.#host;
    return isBox(held) || --host.unchecked < 0 ? host.checkedValue(this, key, held) : held;
  }

  /** The content under the key, fresh or not: a value, a box or undefined. */
  held(key: string): unknown {
    return this.#entries.get(nameOf(key));
  }

  /**
   * Yields every key that is present throughout, whatever is added or removed meanwhile, and always ends: a Map iterates in
   * insertion order, so keys added meanwhile come last.
   */
  *keys(): IterableIterator<string> {
    const entries = this.#entries;
    let left = entries.size;
    for (const [name, held] of entries) {
      if (left-- === 0 || entries !== this.#entries) return;
      if (held !== undefined) yield keyOf(name, this.#longKeys);
    }
  }

  /** Adds a value or a box under a new key. */
  add(key: string, held: unknown): void {
    // Parked keys count towards the size limit of a Map too.
    if (this.#entries.size >= MOST_ENTRIES) this.#deleteParked();
    const name = nameOf(key);
    if (name !== key) this.#longKeys.set(name, key);
    this.#entries.set(name, held);
    if (this.#parked.size > 0) this.#parked.delete(name);
  }

  /** Replaces the value or box of a key. */
  replace(key: string, held: unknown): void {
    this.#entries.set(nameOf(key), held);
  }

  /** Removes a key that is likely to come back. */
  park(key: string): void {
    if (this.size === 1) {
      this.#entries.clear();
      this.#parked.clear();
      this.#longKeys.clear();
      return;
    }
    const name = nameOf(key);
    this.#entries.set(name, undefined);
    this.#parked.add(name);
    if (this.#parked.size > FEWEST_PARKED + this.#entries.size / KEYS_PER_PARKED) this.#deleteParked();
  }

  delete(key: string): void {
    this.#forget(nameOf(key));
  }

  /** Empties the page at once. Returns the keys that it had. */
  retire(): Iterator<string> {
    const keys = keysOf(this.#entries, this.#longKeys);
    this.#entries = new Map();
    this.#longKeys = new Map();
    this.#parked.clear();
    return keys;
  }

  #deleteParked(): void {
    for (const name of this.#parked) this.#forget(name);
    this.#parked.clear();
  }

  #forget(name: KeyName): void {
    this.#entries.delete(name);
    if (typeof name !== "string") this.#longKeys.delete(name);
  }
}

function keyOf(name: KeyName, longKeys: ReadonlyMap<KeyName, string>): string {
  return typeof name === "string" ? name : longKeys.get(name)!;
}

function* keysOf(
  entries: ReadonlyMap<KeyName, unknown>,
  longKeys: ReadonlyMap<KeyName, string>,
): Iterator<string> {
  for (const name of entries.keys()) yield keyOf(name, longKeys);
}
