// mysql2 over MySQL 8 or MariaDB: wraps a pool or a connection, with callbacks or promises, for cachedDependency.
import type { SessionAdapter } from "../core/db-session.ts";
import { leasingMysqlPool } from "./mysql2/leased-connection.ts";
import {
  isMysqlConnection,
  isMysqlPool,
  isPromiseSession,
  type MysqlConnection,
  type MysqlPool,
  type PromiseSession,
  promisesOver,
} from "./mysql2/library.ts";
import { mysql2Sessions as sessions, watchedConnection } from "./mysql2/sessions.ts";
import { hasMethod, wrongArgument } from "./tracking/argument-checks.ts";
import { proxyOf } from "./tracking/proxy.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export type { WatchOptions } from "./tracking/watch-options.ts";

export type Mysql2Session = MysqlPool | MysqlConnection | PromiseSession;

/** `cachedDependency` recognises these sessions on its own. */
export const mysql2Sessions: SessionAdapter<Mysql2Session> = sessions;

/**
 * A pool for libraries that take one, such as kysely: reads of the named tables are cached, commits invalidate them, and a
 * connection of the pool is taken only when a statement needs it. Throws ConfigError ARGUMENT_INVALID.
 */
export function cachedPool<Pool extends object>(pool: Pool, options: WatchOptions): Pool {
  const tracker = trackerOf("cachedPool", options);
  const given: object = pool;
  if (isMysqlPool(given)) return leasingMysqlPool(given, tracker) as object as Pool;
  if (typeof given === "object" && given !== null && isPromiseSession(given) && given.pool !== undefined)
    return promisesOver(given, leasingMysqlPool(given.pool, tracker)) as object as Pool;
  throw wrongArgument("cachedPool", "a pool of mysql2", pool);
}

/**
 * The package itself, for libraries that take it, such as Sequelize as its `dialectModule`: reads of its connections are cached,
 * and their commits invalidate. Throws ConfigError ARGUMENT_INVALID.
 */
export function cachedModule<Library extends object>(library: Library, options: WatchOptions): Library {
  const tracker = trackerOf("cachedModule", options);
  if (!hasMethod(library, "createConnection")) {
    throw wrongArgument("cachedModule", "the package mysql2", library);
  }
  const given = library as { createConnection?(...args: unknown[]): MysqlConnection };
  return proxyOf(library, {
    createConnection: (...args: unknown[]) => {
      const made = given.createConnection?.(...args);
      if (made !== undefined && isMysqlConnection(made)) return watchedConnection(made, tracker);
      throw wrongArgument("cachedModule", "mysql2 with callbacks, not mysql2/promise", made);
    },
  });
}
