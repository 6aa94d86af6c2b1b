// Options of the integrations that are set up in a library instead of through `cachedDependency`.
import { requireOptions } from "../../core/arguments.ts";
import type { CacheForSessions, ChangeFeed, SessionTracker } from "../../core/db-session.ts";
import type { Duration } from "../../core/duration.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { invalidArgument, requireCache } from "./argument-checks.ts";
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
    throw invalidArgument(caller, "tableName", "a table name or a list of names", tableName);
  }
  requireCache(caller, cache);
  return trackSessions({
    cache,
    tables: tables as string[],
    ...(ttl === undefined ? {} : { ttl: ttlToMs(ttl) / 1_000 }),
    ...(feed === undefined ? {} : { feed }),
  });
}
