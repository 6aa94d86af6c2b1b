// The options of `cachedDependency`, and their validation.
import { requireOptions } from "../core/arguments.ts";
import type { CacheForSessions, ChangeFeed, SessionAdapter } from "../core/db-session.ts";
import type { Duration } from "../core/duration.ts";
import { ttlToMs } from "../core/entry-options.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";

export interface DependencyOptions {
  /** Default: the one passed to setDefaultCache, looked up on each call. */
  readonly cache?: CacheForSessions;
  /** Seconds or a text such as "5m". Default: the table's in the cache's `tables`, else the cache's `defaultTtl`. */
  readonly ttl?: Duration;
  /** The table or tables whose reads are cached; `*`: all tables a statement names. */
  readonly tableName: string | readonly string[];
  /** For a library without built-in support. Default: detected from the session. */
  readonly adapter?: SessionAdapter;
  /** Invalidates what other programs commit, such as `postgresFeed`. While it is silent, reads bypass the cache. Default: none. */
  readonly feed?: ChangeFeed;
}

const OPTION_NAMES: readonly (keyof DependencyOptions)[] = ["cache", "ttl", "tableName", "adapter", "feed"];

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD. */
export function checkDependencyOptions(given: unknown): asserts given is DependencyOptions {
  expectThat(typeof given === "object" && given !== null, "the options", "an object with a tableName", given);
  requireOptions(given, OPTION_NAMES);
  const { cache, ttl, tableName, adapter, feed } = given as DependencyOptions;
  expectThat(
    cache === undefined || isSessionCache(cache),
    "cache",
    "a cache with get, getOrSet and invalidateTags",
    cache,
  );
  if (ttl !== undefined) ttlToMs(ttl);
  const names = tableNames({ tableName });
  expectThat(
    names.length > 0 && names.every((name) => typeof name === "string" && name !== ""),
    "tableName",
    "a table's name or a list of names",
    tableName,
  );
  expectThat(
    adapter === undefined || [adapter?.recognises, adapter?.wrap].every((part) => typeof part === "function"),
    "adapter",
    "a SessionAdapter",
    adapter,
  );
  expectThat(
    feed === undefined ||
      [feed?.isAlive, feed?.covers, feed?.rowKey].every((part) => typeof part === "function"),
    "feed",
    "a feed, such as that of postgresFeed",
    feed,
  );
}

export function tableNames({ tableName }: Pick<DependencyOptions, "tableName">): readonly string[] {
  return Array.isArray(tableName) ? tableName : [tableName as string];
}

export function isSessionCache(value: unknown): value is CacheForSessions {
  if (typeof value !== "object" || value === null) return false;
  const { get, getOrSet, invalidateTags } = value as Partial<CacheForSessions>;
  return [get, getOrSet, invalidateTags].every((method) => typeof method === "function");
}

export function expectThat(holds: boolean, what: string, expected: string, arrived: unknown): asserts holds {
  if (!holds) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `cachedDependency(): ${what} must be ${expected}; got ${describeArrival(arrived)}.`,
    );
  }
}
