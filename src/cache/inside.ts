// The parts of a cache object, for what stands above it and must look without being counted.
import type { Namespace } from "../core/namespace.ts";
import type { Instruments } from "./instruments.ts";
import type { CacheLifecycle } from "./lifecycle.ts";

export interface CacheInside {
  readonly root: CacheLifecycle;
  /** One that rejects every call while the cache is disconnected. */
  namespace(): Namespace;
  readonly instruments: Instruments;
  /** As the cache's own `delete`, for people rather than programs: a large value is not transferred to be thrown away. */
  deleteUnread(keys: readonly string[]): Promise<number>;
}

const insides = new WeakMap<object, CacheInside>();

export function offerInside(cache: object, inside: CacheInside): void {
  insides.set(cache, inside);
}

/** Undefined for an object that only implements the interface of a cache. */
export function insideOf(cache: object): CacheInside | undefined {
  return insides.get(cache);
}
