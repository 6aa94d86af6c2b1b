// kysely over PostgreSQL or SQLite: its sessions for cachedDependency, and a dialect whose connections are watched.
import type { Dialect, Driver } from "kysely";
import type { SessionTracker } from "../core/db-session.ts";
import { ConfigError } from "../core/errors.ts";
import { type Source, sourceOf, WatchedConnection } from "./kysely/connection.ts";
import { type AnyDialect, type DialectLike, dialectOf, isDialect } from "./kysely/library.ts";
import type { SqlDialect } from "./sql/sql-tokens.ts";
import { wrongArgument } from "./tracking/argument-checks.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export { kyselySessions } from "./kysely/sessions.ts";
export type { WatchOptions } from "./tracking/watch-options.ts";

/**
 * Wraps a dialect: reads of the named tables are cached, commits invalidate them. Throws ConfigError ARGUMENT_INVALID,
 * also for a dialect of a database other than PostgreSQL or SQLite.
 */
export function cachedDialect<Given extends AnyDialect>(
  dialect: Given,
  options: WatchOptions,
): DialectLike<Given> {
  const tracker = trackerOf("cachedDialect", options);
  const library: unknown = dialect;
  if (!isDialect(library)) throw wrongArgument("cachedDialect", "a PostgreSQL or SQLite dialect", library);
  const sql = dialectOf(library.createAdapter());
  if (sql === undefined) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      "cachedDialect(): expected a PostgreSQL or SQLite dialect, got one for another database.",
      {
        hint: "For MySQL, watch its pool: new MysqlDialect({ pool: cachedPool(pool, options) }), from xcache/db/mysql2.",
      },
    );
  }
  const watched: Dialect = {
    createAdapter: () => library.createAdapter(),
    createQueryCompiler: () => library.createQueryCompiler(),
    createIntrospector: (session) => library.createIntrospector(session),
    createDriver: () => watchedDriver(library.createDriver(), sql, tracker),
  };
  return watched as AnyDialect as DialectLike<Given>;
}

function watchedDriver(driver: Driver, dialect: SqlDialect, tracker: SessionTracker): Driver {
  const source: Source = sourceOf(
    {
      dialect,
      pool: driver,
      take: () => driver.acquireConnection(),
      giveBack: (connection) => void driver.releaseConnection(connection),
    },
    tracker,
  );
  return {
    init: () => driver.init(),
    destroy: () => driver.destroy(),
    acquireConnection: async () => new WatchedConnection(tracker, source),
    releaseConnection: async (connection) => (connection as WatchedConnection).release(),
    // The driver sends BEGIN and the like over the connection it is passed, so the tracker sees them.
    beginTransaction: (connection, settings) => driver.beginTransaction(connection, settings),
    commitTransaction: (connection) => driver.commitTransaction(connection),
    rollbackTransaction: (connection) => driver.rollbackTransaction(connection),
    ...(driver.savepoint && { savepoint: driver.savepoint.bind(driver) }),
    ...(driver.rollbackToSavepoint && { rollbackToSavepoint: driver.rollbackToSavepoint.bind(driver) }),
    ...(driver.releaseSavepoint && { releaseSavepoint: driver.releaseSavepoint.bind(driver) }),
  };
}
