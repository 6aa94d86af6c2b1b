// The sessions of mysql2 that cachedDependency recognises: a pool or a connection, with callbacks or promises.
import type { SessionAdapter, SessionTracker } from "../../core/db-session.ts";
import { perSession } from "../tracking/proxy.ts";
import { watchConnection, wrapConnection } from "./connection.ts";
import {
  isMysqlConnection,
  isMysqlPool,
  isPromiseSession,
  type MysqlConnection,
  type MysqlPool,
  type PromiseSession,
  promisesOver,
} from "./library.ts";
import { wrapMysqlPool } from "./pool.ts";

type Session = MysqlPool | MysqlConnection | PromiseSession;

const pools = perSession(wrapMysqlPool);
const promisePools = perSession((session: PromiseSession, tracker) =>
  promisesOver(session, pools(session.pool as MysqlPool, tracker)),
);

export const mysql2Sessions: SessionAdapter<Session> = {
  name: "mysql2",
  recognises: (session): session is Session =>
    isMysqlPool(session) || isMysqlConnection(session) || isPromiseSession(session),
  dialect: () => "mysql",
  wrap: (session, tracker) => {
    if (isMysqlPool(session)) return pools(session, tracker);
    if (isMysqlConnection(session)) return watchedConnection(session, tracker);
    const { connection } = session;
    return connection === undefined
      ? promisePools(session, tracker)
      : promisesOver(session, watchedConnection(connection, tracker));
  },
};

/** A connection whose statements are watched. */
export function watchedConnection(connection: MysqlConnection, tracker: SessionTracker): MysqlConnection {
  return wrapConnection(watchConnection(connection, tracker));
}
