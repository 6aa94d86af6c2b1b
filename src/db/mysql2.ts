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
import { perSession } from "./tracking/proxy.ts";
import { trackerOf, type WatchOptions, wrongArgument } from "./tracking/watch-options.ts";

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

function wrapped(connection: MysqlConnection, tracker: SessionTracker): MysqlConnection {
  return wrapConnection(watchConnection(connection, tracker));
}
