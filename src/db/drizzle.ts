// drizzle over node-postgres, mysql2 or sqlite-proxy: its sessions for cachedDependency, and its `cache` option.
import { requireFlag, requireOptions } from "../core/arguments.ts";
import type { SessionAdapter } from "../core/db-session.ts";
import { ttlToMs } from "../core/entry-options.ts";
import { requirePeerVersion } from "../core/peer-package.ts";
import { DrizzleCache, type DrizzleCacheOptions, type DrizzleChange } from "./drizzle/cache.ts";
import { mysql2Sessions } from "./mysql2/sessions.ts";
import { pgSessions } from "./pg/sessions.ts";
import { hasMethod, requireCache, wrongArgument } from "./tracking/argument-checks.ts";

export type { DrizzleCacheOptions, DrizzleChange, DrizzleTable } from "./drizzle/cache.ts";
export { drizzleSessions } from "./drizzle/sessions.ts";

/**
 * Pass it to drizzle as `cache`, together with `client(pool)` as `client`. It lists the members of drizzle's class `Cache`
 * instead of extending it, because drizzle declares that class twice: once for import and once for require.
 */
export interface XCacheForDrizzle {
  strategy(): "explicit" | "all";
  get(
    key: string,
    tables: string[],
    isTag: boolean,
    isAutoInvalidate?: boolean,
  ): Promise<unknown[] | undefined>;
  put(
    hashedQuery: string,
    response: unknown,
    tables: string[],
    isTag: boolean,
    config?: object,
  ): Promise<void>;
  onMutate(change: DrizzleChange): Promise<void>;
  /** Wraps a pool or client of node-postgres or mysql2: its commits invalidate, and the reads that drizzle marks are cached. */
  client<Client extends object>(client: Client): Client;
  invalidate(change: DrizzleChange): Promise<void>;
}

const CACHE_OPTION_NAMES: readonly (keyof DrizzleCacheOptions)[] = ["cache", "ttl", "global"];

/**
 * Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD,
 * as does `client` for anything but a pool or client of node-postgres or mysql2.
 */
export function drizzleCache(options: DrizzleCacheOptions): XCacheForDrizzle {
  requireOptions(options, CACHE_OPTION_NAMES);
  requireCache("drizzleCache", options.cache);
  requireFlag(options.global, "global", false);
  if (options.ttl !== undefined) ttlToMs(options.ttl);
  // Older versions ignore the option `cache`.
  requirePeerVersion("drizzle-orm", "drizzleCache", { oldest: "0.44.0" });
  const cache = new DrizzleCache(options);
  return Object.assign(cache, {
    client<Client extends object>(client: Client): Client {
      const adapters: readonly SessionAdapter[] = [pgSessions, mysql2Sessions];
      const adapter = hasMethod(client, "query") && adapters.find((each) => each.recognises(client));
      if (adapter) return adapter.wrap(client, cache.tracker) as typeof client;
      throw wrongArgument("drizzleCache().client", "a pool or client of node-postgres or mysql2", client);
    },
  });
}
