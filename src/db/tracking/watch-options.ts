// Options of the integrations that are set up in a library instead of through `cachedDependency`, and argument checks.
import { requireOptions } from "../../core/arguments.ts";
import type { CacheForSessions, ChangeFeed, SessionTracker } from "../../core/db-session.ts";
import type { Duration } from "../../core/duration.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { trackSessions } from "./session.ts";

export interface WatchOptions {
  readonly cache: CacheForSessions;
  /** The table or tables whose reads are cached; `*`: every table a statement names. */
  readonly tableName: string | readonly string[];
  /** Seconds or a text such as "5m". Default: the table's in the cache's `tables`, else the cache's `defaultTtl`. */
  readonly ttl?: Duration;
  /** Invalidates what other programs commit. While it is silent, reads bypass the cache. Default: none. */
  readonly feed?: ChangeFeed;
}

const OPTION_NAMES: readonly (keyof WatchOptions)[] = ["cache", "tableName", "ttl", "feed"];

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD. */
export function trackerOf(caller: string, options: WatchOptions): SessionTracker {
  requireOptions(options, OPTION_NAMES);
  const { cache, tableName, ttl, feed } = options;
  const tables: readonly unknown[] = Array.isArray(tableName) ? tableName : [tableName];
  if (tables.length === 0 || !tables.every((name) => typeof name === "string" && name !== "")) {
    throw invalid(caller, "tableName", "a table name or a list of names", tableName);
  }
  requireCache(caller, cache);
  return trackSessions({
    cache,
    tables: tables as string[],
    ...(ttl === undefined ? {} : { ttl: ttlToMs(ttl) / 1_000 }),
    ...(feed === undefined ? {} : { feed }),
  });
}

/** Throws ConfigError ARGUMENT_INVALID. */
export function requireCache(caller: string, cache: Partial<CacheForSessions> | undefined): void {
  const methods = [cache?.get, cache?.getOrSet, cache?.invalidateTags];
  if (methods.every((method) => typeof method === "function")) return;
  throw invalid(caller, "cache", "a cache with get, getOrSet and invalidateTags", cache);
}

function invalid(caller: string, what: string, expected: string, arrived: unknown): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `${caller}(): ${what} must be ${expected}; got ${describeArrival(arrived)}.`,
  );
}

export const hasMethod = (value: unknown, name: string): boolean =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === "function";

/** An argument that is not an object of the expected library. */
export function wrongArgument(caller: string, expected: string, value: unknown): ConfigError {
  const arrived = describeArrival(value);
  return new ConfigError("ARGUMENT_INVALID", `${caller}(): expected ${expected}, got ${arrived}.`);
}
