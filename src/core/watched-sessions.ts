// Which sessions were handed out by cachedDependency, and for what: `explain` is asked about them.
import type { SessionScope, SqlDialectName } from "./db-session.ts";

export interface WatchedSession {
  readonly scope: SessionScope;
  /** undefined: the adapter does not tell. */
  readonly dialect: SqlDialectName | undefined;
}

const sessions = new WeakMap<object, WatchedSession>();

export function rememberSession(session: object, watched: WatchedSession): void {
  sessions.set(session, watched);
}

export const watchedSession = (session: object): WatchedSession | undefined => sessions.get(session);
