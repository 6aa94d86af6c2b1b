// A session is handed out again and again, and is one session all the time.
import type { SessionTracker } from "../../core/db-session.ts";

/** Wraps each session once for each tracker. */
export function perSession<Session extends object>(
  wrap: (session: Session, tracker: SessionTracker) => Session,
): (session: Session, tracker: SessionTracker) => Session {
  const trackers = new WeakMap<SessionTracker, WeakMap<Session, Session>>();
  return (session, tracker) => {
    const wrapped = trackers.get(tracker) ?? new WeakMap<Session, Session>();
    trackers.set(tracker, wrapped);
    const found = wrapped.get(session) ?? wrap(session, tracker);
    wrapped.set(session, found);
    return found;
  };
}
