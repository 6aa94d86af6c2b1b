// The sessions of kysely over PostgreSQL or SQLite, for cachedDependency.
import type { KyselyPlugin, QueryExecutor } from "kysely";
import type { SessionAdapter, SessionTracker } from "../../core/db-session.ts";
import { perSession } from "../tracking/proxy.ts";
import { foreignTransaction, sourceOf, WatchedConnection } from "./connection.ts";
import { type AnyKysely, type DatabaseConnection, dialectOf, isKysely } from "./library.ts";

/** `cachedDependency` recognises these sessions on its own. */
export const kyselySessions: SessionAdapter<AnyKysely> = {
  name: "kysely",
  recognises: isKysely,
  dialect: (session) => dialectOf(session.getExecutor().adapter),
  wrap: perSession(wrapSession),
};

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
