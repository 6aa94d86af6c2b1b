// mysql2 over MySQL 8 or MariaDB: wraps a pool or a connection, with callbacks or promises, for cachedDependency.
import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { watchConnection, wrapConnection } from "./mysql2/connection.ts";
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
import { wrapMysqlPool } from "./mysql2/pool.ts";
import { perSession, proxyOf } from "./tracking/proxy.ts";
import { hasMethod, trackerOf, type WatchOptions, wrongArgument } from "./tracking/watch-options.ts";

export type { WatchOptions } from "./tracking/watch-options.ts";

export type Mysql2Session = MysqlPool | MysqlConnection | PromiseSession;

const pools = perSession(wrapMysqlPool);
const promisePools = perSession((session: PromiseSession, tracker) =>
  promisesOver(session, pools(session.pool as MysqlPool, tracker)),
);

/** `cachedDependency` recognises these sessions on its own. */
export const mysql2Sessions: SessionAdapter<Mysql2Session> = {
  name: "mysql2",
  recognises: (session): session is Mysql2Session =>
    isMysqlPool(session) || isMysqlConnection(session) || isPromiseSession(session),
  dialect: () => "mysql",
  wrap: (session, tracker) => {
    if (isMysqlPool(session)) return pools(session, tracker);
    if (isMysqlConnection(session)) return wrapped(session, tracker);
    const { connection } = session;
    return connection === undefined
      ? promisePools(session, tracker)
      : promisesOver(session, wrapped(connection, tracker));
  },
};

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
      if (made !== undefined && isMysqlConnection(made)) return wrapped(made, tracker);
      throw wrongArgument("cachedModule", "mysql2 with callbacks, not mysql2/promise", made);
    },
  });
}

function wrapped(connection: MysqlConnection, tracker: SessionTracker): MysqlConnection {
  return wrapConnection(watchConnection(connection, tracker));
}
