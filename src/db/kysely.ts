// kysely over PostgreSQL or SQLite: its sessions for cachedDependency, and a dialect whose connections are watched.
import type { Dialect, Driver, KyselyPlugin, QueryExecutor } from "kysely";
import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { ConfigError } from "../core/errors.ts";
import { foreignTransaction, type Source, sourceOf, WatchedConnection } from "./kysely/connection.ts";
import {
  type AnyDialect,
  type AnyKysely,
  type DatabaseConnection,
  type DialectLike,
  dialectOf,
  isDialect,
  isKysely,
} from "./kysely/library.ts";
import type { SqlDialect } from "./sql/sql-tokens.ts";
import { wrongArgument } from "./tracking/argument-checks.ts";
import { perSession } from "./tracking/proxy.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export type { WatchOptions } from "./tracking/watch-options.ts";

/** `cachedDependency` recognises these sessions on its own. */
export const kyselySessions: SessionAdapter<AnyKysely> = {
  name: "kysely",
  recognises: isKysely,
  dialect: (session) => dialectOf(session.getExecutor().adapter),
  wrap: perSession(wrapSession),
};

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

function wrapSession(session: AnyKysely, tracker: SessionTracker): AnyKysely {
  const executor = session.getExecutor();
  const dialect = dialectOf(executor.adapter)!;
  const source = session.isTransaction
    ? foreignTransaction(executor, dialect, tracker)
    : sourceOf({ dialect, pool: session, ...connectionsOf(executor) }, tracker);
  const provider = {
    async provideConnection<T>(consumer: (connection: DatabaseConnection) => Promise<T>): Promise<T> {
      const connection = new WatchedConnection(tracker, source);
      try {
        return await consumer(connection);
      } finally {
        connection.release();
      }
    },
  };
  return withExecutor(session, executor.withConnectionProvider(provider));
}

/**
 * The same session with another executor. A session's state is private, and `withPlugin` is the only method that clones
 * it with the executor its own executor returns: so that one returns ours for the length of the call.
 */
function withExecutor(session: AnyKysely, executor: QueryExecutor): AnyKysely {
  const present = session.getExecutor();
  Object.defineProperty(present, "withPlugin", { value: () => executor, configurable: true });
  try {
    return session.withPlugin({} as KyselyPlugin);
  } finally {
    Reflect.deleteProperty(present, "withPlugin");
  }
}

/** An executor provides a connection for the length of a callback; this turns that into take and giveBack. */
function connectionsOf(executor: QueryExecutor) {
  const ends = new WeakMap<DatabaseConnection, () => void>();
  return {
    take: () =>
      new Promise<DatabaseConnection>((resolve, reject) => {
        const hold = (connection: DatabaseConnection): Promise<void> =>
          new Promise((end) => {
            ends.set(connection, end);
            resolve(connection);
          });
        executor.provideConnection(hold).catch(reject);
      }),
    giveBack: (connection: DatabaseConnection) => ends.get(connection)?.(),
  };
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
