// What a cache has at hand, for parts of the library that can use it at once: a promise costs as much as the rest of a hit.

export interface Taker {
  /** Returns whether the value was of use: then it was a hit. */
  take(value: unknown): boolean;
}

/** Offers the taker a fresh value that is at hand. Returns whether it was taken; if not, the cache is to be asked. */
export type QuickLook = (key: string, taker: Taker) => boolean;

const looks = new WeakMap<object, QuickLook>();

export function offerLook(cache: object, look: QuickLook): void {
  looks.set(cache, look);
}

/** Undefined for what only behaves like one of our caches. */
export function lookInto(cache: object): QuickLook | undefined {
  return looks.get(cache);
}
