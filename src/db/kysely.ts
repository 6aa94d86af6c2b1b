// Sessions of kysely over PostgreSQL or SQLite, and a dialect whose connections are watched.
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
import { notWanted } from "./tracking/handed-over.ts";
import { perSession } from "./tracking/per-session.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export type { WatchOptions } from "./tracking/watch-options.ts";

/** For `cachedDependency`, which finds it by itself. */
export const kyselySessions: SessionAdapter<AnyKysely> = {
  name: "kysely",
  recognises: isKysely,
  wrap: perSession(wrapSession),
};

/**
 * A dialect like the given one, with reads of the named tables cached and commits invalidating. Throws ConfigError
 * ARGUMENT_INVALID, also for a dialect of another database than PostgreSQL or SQLite.
 */
export function cachedDialect<Given extends AnyDialect>(
  dialect: Given,
  options: WatchOptions,
): DialectLike<Given> {
  const tracker = trackerOf("cachedDialect", options);
  const library: unknown = dialect;
  if (!isDialect(library)) throw notWanted("cachedDialect", "a dialect of PostgreSQL or SQLite", library);
  const sql = dialectOf(library.createAdapter());
  if (sql === undefined) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      "cachedDialect(): expected a dialect of PostgreSQL or SQLite, got one of another database.",
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
    : sourceOf({ dialect, pool: session, ...heldBy(executor) }, tracker);
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
 * The same session with another executor: what it makes for itself and a plugin, whose executor the present one is
 * asked for. Everything else that a session holds is out of reach.
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

/** Connections that an executor provides to whoever asks, for as long as that takes. */
function heldBy(executor: QueryExecutor) {
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
    // The driver sends its statements over whatever connection it is given.
    beginTransaction: (connection, settings) => driver.beginTransaction(connection, settings),
    commitTransaction: (connection) => driver.commitTransaction(connection),
    rollbackTransaction: (connection) => driver.rollbackTransaction(connection),
    ...(driver.savepoint && { savepoint: driver.savepoint.bind(driver) }),
    ...(driver.rollbackToSavepoint && { rollbackToSavepoint: driver.rollbackToSavepoint.bind(driver) }),
    ...(driver.releaseSavepoint && { releaseSavepoint: driver.releaseSavepoint.bind(driver) }),
  };
}
