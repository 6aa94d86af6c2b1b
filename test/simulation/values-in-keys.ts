// Stands in for WeakMap in the sources when the simulation is bundled: a value is kept in a private field of its key.
//
// A collection of the young generation takes what an old WeakMap maps to as reachable, whatever has become of the key. So each
// world would be kept, with everything it refers to, until the old generation is collected.

/** A constructor that adds the private fields of a derived class to any object, a frozen one as well. */
class Present {
  constructor(key: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the fields of the derived class are added to what is returned.
    return key;
  }
}

const NOTHING = Symbol("nothing");

export class ValuesInKeys<K extends object, V> {
  readonly has: (key: K) => boolean;
  readonly get: (key: K) => V | undefined;
  readonly set: (key: K, value: V) => this;
  readonly delete: (key: K) => boolean;

  constructor() {
    class Kept extends Present {
      #value: V | typeof NOTHING = NOTHING;

      static read(key: K): V | typeof NOTHING {
        return #value in key ? (key as unknown as Kept).#value : NOTHING;
      }

      static write(key: K, value: V | typeof NOTHING): void {
        const kept = #value in key ? (key as unknown as Kept) : new Kept(key);
        kept.#value = value;
      }
    }
    this.has = (key) => isObject(key) && Kept.read(key) !== NOTHING;
    this.get = (key) => {
      const value = isObject(key) ? Kept.read(key) : NOTHING;
      return value === NOTHING ? undefined : value;
    };
    this.set = (key, value) => {
      Kept.write(key, value);
      return this;
    };
    this.delete = (key) => {
      const isThere = this.has(key);
      if (isThere) Kept.write(key, NOTHING);
      return isThere;
    };
  }
}

const isObject = (key: unknown): key is object =>
  typeof key === "function" || (typeof key === "object" && key !== null);
