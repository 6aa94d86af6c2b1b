// Access to a cache's hits for other parts of the library: at once, since a promise costs as much as the rest of a hit, or
// before a load that counts the miss.

export interface SyncPeek {
  /** A fresh value available synchronously. undefined: call the cache itself. */
  peek(key: string): unknown;
  /** Counts a hit: the value returned by `peek` was used. */
  used(key: string): void;
  /** As `get`, but a miss does not count. */
  find(key: string): Promise<unknown>;
}

const peeks = new WeakMap<object, SyncPeek>();

export function offerPeek(cache: object, peek: SyncPeek): void {
  peeks.set(cache, peek);
}

/** undefined for an object that only implements the interface of a cache. */
export function peekInto(cache: object): SyncPeek | undefined {
  return peeks.get(cache);
}
