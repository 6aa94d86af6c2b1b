// One namespace's entries: a Map that holds the values themselves, so that a hit is one lookup.
//
// V8's Map leaves a deleted entry in the chain of its bucket until the whole table is rebuilt, so a key that is set and
// deleted over and over would make every miss on it walk all its former entries. A key that leaves by itself is
// therefore parked: it stays in the Map without a value, and parked keys are deleted together when there are enough.
import { MOST_ENTRIES } from "../../../core/limits.ts";
import { isBox } from "./box.ts";
import { type KeyName, nameOf } from "./key-name.ts";

/** What a page asks of the table it belongs to. */
export interface PageHost {
  /** How many hits on what is not in a box need nothing further; the page counts down. */
  unchecked: number;
  /** The value of what the page holds, if it is fresh. Records the use. */
  look(page: Page, key: string, held: unknown): unknown;
}

/** How many keys may be parked: these and one in so many of the keys. */
const FEWEST_PARKED = 64;
const KEYS_PER_PARKED = 64;

/** Everyone may read it; only its table writes. */
export class Page {
  /** What an entry's row says it is in; another one after `retire`. */
  number = 0;
  readonly #host: PageHost;
  /** Values and boxes; undefined for a parked key. */
  #entries = new Map<KeyName, unknown>();
  readonly #parked = new Set<KeyName>();
  /** The keys that are not their own names. */
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
    return isBox(held) || --host.unchecked < 0 ? host.look(this, key, held) : held;
  }

  /** What is under the key, fresh or not: a value, a box or undefined. */
  held(key: string): unknown {
    return this.#entries.get(nameOf(key));
  }

  /**
   * Meets every key that is there from beginning to end, whatever is added or removed meanwhile, and ends in any case:
   * a Map is walked in the order of insertion, so what was there comes before what is added.
   */
  *keys(): IterableIterator<string> {
    const entries = this.#entries;
    let left = entries.size;
    for (const [name, held] of entries) {
      if (left-- === 0 || entries !== this.#entries) return;
      if (held !== undefined) yield keyOf(name, this.#longKeys);
    }
  }

  /** Puts a value or a box under a key that has none. */
  add(key: string, held: unknown): void {
    // Parked keys fill a Map as well.
    if (this.#entries.size >= MOST_ENTRIES) this.#deleteParked();
    const name = nameOf(key);
    if (name !== key) this.#longKeys.set(name, key);
    this.#entries.set(name, held);
    if (this.#parked.size > 0) this.#parked.delete(name);
  }

  /** Puts a value or a box in the place of another. */
  replace(key: string, held: unknown): void {
    this.#entries.set(nameOf(key), held);
  }

  /** Takes out a key that may well come back. */
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

  /** Begins anew, empty. Returns the keys that were there. */
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
