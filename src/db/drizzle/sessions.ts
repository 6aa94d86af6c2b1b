// The sessions of drizzle over node-postgres, mysql2 or sqlite-proxy that cachedDependency recognises.
import type { SessionAdapter, SessionTracker } from "../../core/db-session.ts";
import { ConfigError } from "../../core/errors.ts";
import { mysql2Sessions } from "../mysql2/sessions.ts";
import { pgSessions } from "../pg/sessions.ts";
import { perSession } from "../tracking/proxy.ts";
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
} from "./library.ts";
import { watchRemote } from "./remote.ts";

/** `cachedDependency` recognises these sessions on its own. */
export const drizzleSessions: SessionAdapter<object> = {
  name: "drizzle",
  recognises: (session): session is object =>
    [isPgDatabase, isMysqlDatabase, isRemoteDatabase, isSynchronousDatabase].some((is) => is(session)),
  dialect: (session) => (isPgDatabase(session) ? "postgres" : isMysqlDatabase(session) ? "mysql" : "sqlite"),
  wrap: perSession(wrapSession),
};

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
