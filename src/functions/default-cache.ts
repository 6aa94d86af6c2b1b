// The default cache of wrapped functions without a cache of their own.
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { GetOrSetOptions, Load } from "../core/options.ts";

/** The cache operations that wrapped functions need. */
export interface CacheForFunctions {
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  /** Returns how many entries were present. */
  delete(key: string): Promise<number>;
}

let current: CacheForFunctions | undefined;

/**
 * Functions wrapped without a cache use this one from now on, including those wrapped earlier; undefined removes it.
 * Throws ConfigError ARGUMENT_INVALID for anything else.
 *
 * @example
 * ```ts
 * setDefaultCache(new XCache({ kvUrl: "memory://" }));
 * const getUser = cached(fetchUser, { ttl: "1m" }); // no cache named
 * ```
 */
export function setDefaultCache(cache: CacheForFunctions | undefined): void {
  if (cache !== undefined && !isCache(cache)) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `setDefaultCache(): expected a cache or undefined; got ${describeArrival(cache)}.`,
    );
  }
  current = cache;
}

export function isCache(value: unknown): value is CacheForFunctions {
  if (typeof value !== "object" || value === null) return false;
  const { getOrSet, delete: remove } = value as Partial<CacheForFunctions>;
  return typeof getOrSet === "function" && typeof remove === "function";
}

/** Throws ConfigError NO_DEFAULT_CACHE if none is set; `name` is the wrapped function's. */
export function defaultCache(name: string): CacheForFunctions {
  if (current === undefined) {
    throw new ConfigError(
      "NO_DEFAULT_CACHE",
      `${name}() was wrapped without a cache and no default cache is set.`,
    );
  }
  return current;
}
