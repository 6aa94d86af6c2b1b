// What a cache has at hand, for parts of the library that can use it at once: a promise costs as much as the rest of a hit.

export interface SyncPeek {
  /** A fresh value that is at hand. undefined: the cache is to be asked. */
  peek(key: string): unknown;
  /** What `peek` gave was of use: it was a hit. */
  used(key: string): void;
}

const looks = new WeakMap<object, SyncPeek>();

export function offerPeek(cache: object, look: SyncPeek): void {
  looks.set(cache, look);
}

/** Undefined for what only behaves like one of our caches. */
export function peekInto(cache: object): SyncPeek | undefined {
  return looks.get(cache);
}
