// A cache for Apollo Server 5: persisted queries, cached responses, data sources.
import type { KeyValueCache, KeyValueCacheSetOptions } from "@apollo/utils.keyvaluecache";
import { requireOptions } from "../core/arguments.ts";
import { BackendError, CodecError } from "../core/errors.ts";
import { type CacheSource, resolveCacheSource } from "./cache-source.ts";

export type { CacheSource } from "./cache-source.ts";

export interface ApolloCacheOptions {
  /** The namespace of the cache that Apollo uses. Default: `apollo`. */
  readonly namespace?: string;
  /** Called when a read failed and was answered as a miss. */
  readonly onError?: (error: Error) => void;
}

/** Returned by `apolloCache`: a `KeyValueCache` that can be cleared and closed. */
export interface ApolloCache<V> extends KeyValueCache<V> {
  delete(key: string): Promise<boolean>;
  clear(): Promise<void>;
  /** Closes the cache if it was created from a configuration here. */
  disconnect(): Promise<void>;
}

/** To Apollo a ttl of 0 or null means no expiry, and no ttl means the cache's default. */
function setOptions(options: KeyValueCacheSetOptions | undefined): { ttl?: number } {
  if (options?.ttl === undefined) return {};
  return { ttl: options.ttl === 0 || options.ttl === null ? Number.POSITIVE_INFINITY : options.ttl };
}

/**
 * `new ApolloServer({ cache: apolloCache(cache) })`. Lifetimes are in seconds. A failed read is a miss, because Apollo would
 * fail the request. A failed write rejects, and Apollo logs it. Throws ConfigError for an invalid configuration or invalid options.
 */
export function apolloCache<V = string>(
  source: CacheSource,
  options: ApolloCacheOptions = {},
): ApolloCache<V> {
  requireOptions(options, ["namespace", "onError"]);
  const { namespace = "apollo", onError } = options;
  const resolved = resolveCacheSource(source);
  const cache = resolved.cache.namespace(namespace);
  return {
    async get(key) {
      try {
        return await cache.get<V>(key);
      } catch (error) {
        if (!(error instanceof BackendError || error instanceof CodecError)) throw error;
        onError?.(error);
        return undefined;
      }
    },
    set: (key, value, given) => cache.set(key, value, setOptions(given)),
    delete: async (key) => (await cache.delete(key)) > 0,
    clear: () => cache.clear(),
    disconnect: () => resolved.release(),
  };
}
