// A cache for Apollo Server 5: persisted queries, cached responses, data sources.
import type { KeyValueCache, KeyValueCacheSetOptions } from "@apollo/utils.keyvaluecache";
import { requireOptions } from "../core/arguments.ts";
import { BackendError, CodecError } from "../core/errors.ts";
import { type CacheSource, holdCache } from "./cache-source.ts";

export type { CacheSource } from "./cache-source.ts";

export interface ApolloCacheOptions {
  /** The part of the cache that Apollo uses. Default: `apollo`. */
  readonly namespace?: string;
  /** Told when a read failed and was answered as if nothing was there. */
  readonly onError?: (error: Error) => void;
}

/** What `apolloCache` gives: a `KeyValueCache` that can be emptied and closed. */
export interface ApolloCache<V> extends KeyValueCache<V> {
  delete(key: string): Promise<boolean>;
  clear(): Promise<void>;
  /** Closes a cache that was made from a configuration here. */
  disconnect(): Promise<void>;
}

/** Apollo says 0 or null for "without a limit", and nothing for "as the cache likes". */
function setOptions(options: KeyValueCacheSetOptions | undefined): { ttl?: number } {
  if (options?.ttl === undefined) return {};
  return { ttl: options.ttl === 0 || options.ttl === null ? Number.POSITIVE_INFINITY : options.ttl };
}

/**
 * `new ApolloServer({ cache: apolloCache(cache) })`. Lifetimes are seconds. A read that fails is a miss: Apollo would
 * fail the request. Writes reject: Apollo logs them. Throws ConfigError for a configuration or options that cannot be.
 */
export function apolloCache<V = string>(
  source: CacheSource,
  options: ApolloCacheOptions = {},
): ApolloCache<V> {
  requireOptions(options, ["namespace", "onError"]);
  const { namespace = "apollo", onError } = options;
  const held = holdCache(source);
  const space = held.cache.namespace(namespace);
  return {
    async get(key) {
      try {
        return await space.get<V>(key);
      } catch (error) {
        if (!(error instanceof BackendError || error instanceof CodecError)) throw error;
        onError?.(error);
        return undefined;
      }
    },
    set: (key, value, given) => space.set(key, value, setOptions(given)),
    delete: async (key) => (await space.delete(key)) > 0,
    clear: () => space.clear(),
    disconnect: () => held.release(),
  };
}
