// The cache of wrapped functions that name none.
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { GetOrSetOptions, Load } from "../core/options.ts";

/** What wrapped functions need of a cache. */
export interface CacheForFunctions {
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  /** How many were present. */
  delete(key: string): Promise<number>;
}

let current: CacheForFunctions | undefined;

/**
 * Functions wrapped without a cache use this one from now on, also those wrapped earlier; undefined takes it away.
 * Throws ConfigError ARGUMENT_INVALID for anything else.
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

/** Throws ConfigError NO_DEFAULT_CACHE when none is set; `name` is the function that asked. */
export function defaultCache(name: string): CacheForFunctions {
  if (current === undefined) {
    throw new ConfigError(
      "NO_DEFAULT_CACHE",
      `${name}() was wrapped without a cache and no default cache is set.`,
    );
  }
  return current;
}
