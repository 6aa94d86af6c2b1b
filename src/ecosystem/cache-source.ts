// The cache behind an adapter: the caller's own, or one that the adapter creates and closes itself.
import type { CacheConfig } from "../config/types.ts";
import { ConfigError } from "../core/errors.ts";
import { XCache } from "../xcache.ts";

/** A cache, which its owner closes, or a configuration for one that the adapter creates and closes. */
export type CacheSource = XCache | CacheConfig;

export interface ResolvedCache {
  readonly cache: XCache;
  /** Disconnects the cache if it was created here; does nothing to the caller's own. */
  release(): Promise<void>;
}

/** Throws ConfigError for an invalid configuration. */
export function resolveCacheSource(source: CacheSource): ResolvedCache {
  if (source instanceof XCache) return { cache: source, release: async () => {} };
  // `new XCache(undefined)` connects to localhost, which is not what a caller with an unset variable meant.
  if (source === undefined) {
    const message = "expected a cache or a cache configuration ({} for the defaults), got undefined";
    throw new ConfigError("ARGUMENT_INVALID", message);
  }
  const cache = new XCache(source);
  return { cache, release: () => cache.disconnect() };
}
