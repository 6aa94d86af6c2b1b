// drizzle over node-postgres, mysql2 or sqlite-proxy: its sessions for cachedDependency, and its `cache` option.
import { requireFlag, requireOptions } from "../core/arguments.ts";
import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { ttlToMs } from "../core/entry-options.ts";
import { ConfigError } from "../core/errors.ts";
import { requirePeerVersion } from "../core/peer-package.ts";
import { DrizzleCache, type DrizzleCacheOptions, type DrizzleChange } from "./drizzle/cache.ts";
import {
  type DatabaseClass,
  type DrizzleDatabase,
  isMysqlDatabase,
  isPgDatabase,
  isRemoteDatabase,
  isSynchronousDatabase,
  type MysqlSession,
  type PgSession,
  type RemoteSession,
} from "./drizzle/library.ts";
import { watchRemote } from "./drizzle/remote.ts";
import { mysql2Sessions } from "./mysql2.ts";
import { pgSessions } from "./pg.ts";
import { perSession } from "./tracking/proxy.ts";
import { hasMethod, requireCache, wrongArgument } from "./tracking/watch-options.ts";

export type { DrizzleCacheOptions, DrizzleChange, DrizzleTable } from "./drizzle/cache.ts";

/** `cachedDependency` recognises these sessions on its own. */
export const drizzleSessions: SessionAdapter<object> = {
  name: "drizzle",
  recognises: (session): session is object =>
    [isPgDatabase, isMysqlDatabase, isRemoteDatabase, isSynchronousDatabase].some((is) => is(session)),
  dialect: (session) => (isPgDatabase(session) ? "postgres" : isMysqlDatabase(session) ? "mysql" : "sqlite"),
  wrap: perSession(wrapSession),
};

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

function wrapSession(session: object, tracker: SessionTracker): object {
  if (isPgDatabase(session)) return overPostgres(session, tracker);
  if (isMysqlDatabase(session)) return overMysql(session, tracker);
  if (isRemoteDatabase(session)) return overRemote(session, tracker);
  throw new ConfigError(
    "ARGUMENT_INVALID",
    "this driver of drizzle, such as better-sqlite3, is synchronous and cannot use an async cache.",
    { hint: "Use drizzle-orm/sqlite-proxy with a callback that queries the same database." },
  );
}

function overPostgres(session: DrizzleDatabase<PgSession>, tracker: SessionTracker): object {
  const { client, schema, options } = session.session;
  const watched = pgSessions.wrap(client, tracker);
  const ownSession = sameClass(session.session, watched, session.dialect, schema, options);
  const database = sameClass(session, session.dialect, ownSession, schema, session.nestedIndex);
  return Object.assign(database, { $client: watched, $cache: session.$cache });
}

function overMysql(session: DrizzleDatabase<MysqlSession>, tracker: SessionTracker): object {
  const { client, schema, options } = session.session;
  const { dialect, mode, nestedIndex } = session;
  const watched = mysql2Sessions.wrap(client, tracker);
  const ownSession = sameClass(session.session, watched, dialect, schema, options);
  const own = nestedIndex === undefined ? [mode] : [nestedIndex, mode];
  const database = sameClass(session, dialect, ownSession, schema, ...own);
  return Object.assign(database, { $client: watched, $cache: session.$cache });
}

function overRemote(session: DrizzleDatabase<RemoteSession>, tracker: SessionTracker): object {
  const { schema, logger, cache } = session.session;
  const { nestedIndex } = session;
  const { client, batch } = watchRemote(session.session, tracker, nestedIndex !== undefined);
  const ownSession = sameClass(session.session, client, session.dialect, schema, batch, { logger, cache });
  const database = sameClass(session, session.resultKind, session.dialect, ownSession, schema, nestedIndex);
  return Object.assign(database, { $cache: session.$cache });
}

/** A new object of the same class. */
function sameClass(original: object, ...parts: readonly unknown[]): object {
  return new (original.constructor as DatabaseClass)(...parts);
}
