// The cache of wrapped functions that name none.
import { ConfigError } from "../core/errors.ts";
import type { GetOrSetOptions, Load, SetOptions } from "../core/options.ts";

/** What wrapped functions need of a cache. */
export interface CacheForFunctions {
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  /** How many were present. */
  delete(key: string): Promise<number>;
  set(key: string, value: unknown, options?: SetOptions): Promise<void>;
}

let current: CacheForFunctions | undefined;

/** Functions wrapped without a cache use this one from now on, also those wrapped earlier; undefined takes it away. */
export function setDefaultCache(cache: CacheForFunctions | undefined): void {
  current = cache;
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
