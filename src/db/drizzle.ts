// Sessions of drizzle over node-postgres or sqlite-proxy, and its `cache` option.
import { requireFlag, requireOptions } from "../core/arguments.ts";
import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { ttlToMs } from "../core/entry-options.ts";
import { ConfigError } from "../core/errors.ts";
import { DrizzleCache, type DrizzleCacheOptions, type DrizzleChange } from "./drizzle/cache.ts";
import {
  type DatabaseClass,
  type DrizzleDatabase,
  isPgDatabase,
  isRemoteDatabase,
  isSynchronousDatabase,
  type PgSession,
  type RemoteSession,
} from "./drizzle/library.ts";
import { watchRemote } from "./drizzle/remote.ts";
import { pgSessions } from "./pg.ts";
import { hasMethod, notWanted } from "./tracking/handed-over.ts";
import { perSession } from "./tracking/per-session.ts";
import { requireCache } from "./tracking/watch-options.ts";

export type { DrizzleCacheOptions, DrizzleChange, DrizzleTable } from "./drizzle/cache.ts";

/** For `cachedDependency`, which finds it by itself. */
export const drizzleSessions: SessionAdapter<object> = {
  name: "drizzle",
  recognises: (session): session is object =>
    isPgDatabase(session) || isRemoteDatabase(session) || isSynchronousDatabase(session),
  wrap: perSession(wrapSession),
};

/**
 * drizzle's cache, to be given as `cache` together with `client(pool)` as `client`. Its members are those of drizzle's class
 * `Cache`, which is another one in a CommonJS module than in an ES module.
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
  /** The pool or client of node-postgres whose commits count and whose marked reads are cached. */
  client<Client extends object>(client: Client): Client;
  invalidate(change: DrizzleChange): Promise<void>;
}

const CACHE_OPTION_NAMES: readonly (keyof DrizzleCacheOptions)[] = ["cache", "ttl", "global"];

/**
 * Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD, also when `client` is given anything but a pool or a
 * client of node-postgres.
 */
export function drizzleCache(options: DrizzleCacheOptions): XCacheForDrizzle {
  requireOptions(options, CACHE_OPTION_NAMES);
  requireCache("drizzleCache", options.cache);
  requireFlag(options.global, "global", false);
  if (options.ttl !== undefined) ttlToMs(options.ttl);
  const cache = new DrizzleCache(options);
  return Object.assign(cache, {
    client<Client extends object>(client: Client): Client {
      if (hasMethod(client, "query") && pgSessions.recognises(client))
        return pgSessions.wrap(client, cache.tracker) as typeof client;
      throw notWanted("drizzleCache().client", "a pool or a client of node-postgres", client);
    },
  });
}

function wrapSession(session: object, tracker: SessionTracker): object {
  if (isPgDatabase(session)) return overPostgres(session, tracker);
  if (isRemoteDatabase(session)) return overRemote(session, tracker);
  throw new ConfigError(
    "ARGUMENT_INVALID",
    "drizzle over better-sqlite3 answers at once, so that there is no time to ask a cache.",
    { hint: "Use drizzle-orm/sqlite-proxy with a callback that asks better-sqlite3." },
  );
}

function overPostgres(session: DrizzleDatabase<PgSession>, tracker: SessionTracker): object {
  const { client, schema, options } = session.session;
  const watched = pgSessions.wrap(client, tracker);
  const own = madeLike(session.session, watched, session.dialect, schema, options);
  const made = madeLike(session, session.dialect, own, schema);
  return Object.assign(made, { $client: watched, $cache: session.$cache });
}

function overRemote(session: DrizzleDatabase<RemoteSession>, tracker: SessionTracker): object {
  const { schema, logger, cache } = session.session;
  const { client, batch } = watchRemote(session.session, tracker);
  const own = madeLike(session.session, client, session.dialect, schema, batch, { logger, cache });
  const made = madeLike(session, session.resultKind, session.dialect, own, schema);
  return Object.assign(made, { $cache: session.$cache });
}

/** An object of the same class. */
function madeLike(one: object, ...parts: readonly unknown[]): object {
  return new (one.constructor as DatabaseClass)(...parts);
}
