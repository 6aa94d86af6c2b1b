// The cache that an adapter stands on: the caller's own, or one that the adapter opens and closes itself.
import type { CacheConfig } from "../config/types.ts";
import { ConfigError } from "../core/errors.ts";
import { XCache } from "../xcache.ts";

/** A cache, which its owner closes, or the configuration of one that the adapter makes and closes. */
export type CacheSource = XCache | CacheConfig;

export interface HeldCache {
  readonly cache: XCache;
  /** Disconnects a cache that was made here, and leaves any other alone. */
  release(): Promise<void>;
}

/** Throws ConfigError for a configuration that cannot be. */
export function holdCache(source: CacheSource): HeldCache {
  if (source instanceof XCache) return { cache: source, release: async () => {} };
  // `new XCache(undefined)` is one on localhost, which nobody meant who passed a variable.
  if (source === undefined) {
    const message = "expected a cache or the configuration of one ({} for the defaults), got undefined";
    throw new ConfigError("ARGUMENT_INVALID", message);
  }
  const cache = new XCache(source);
  return { cache, release: () => cache.disconnect() };
}
