// Sessions of node-postgres: a Pool, a Client, or a client of a pool.
import type { SessionAdapter, SessionTracker } from "../core/session.ts";
import { watchClient, wrapClient } from "./pg/client.ts";
import { isClient, isPool, type PgClient, type PgPool } from "./pg/library.ts";
import { wrapPool } from "./pg/pool.ts";

/** A pool is handed out again and again, and is one session all the time. */
const wrappedPools = new WeakMap<SessionTracker, WeakMap<PgPool, PgPool>>();

/** For `cachedDependency`, which finds it by itself. */
export const pgSessions: SessionAdapter<PgClient | PgPool> = {
  name: "node-postgres",
  recognises: (session) => isClient(session) || isPool(session),
  wrap: (session, tracker) =>
    isPool(session) ? pooled(session, tracker) : wrapClient(watchClient(session, tracker)),
};

function pooled(pool: PgPool, tracker: SessionTracker): PgPool {
  const ofTracker = wrappedPools.get(tracker) ?? new WeakMap<PgPool, PgPool>();
  wrappedPools.set(tracker, ofTracker);
  const wrapped = ofTracker.get(pool) ?? wrapPool(pool, tracker);
  ofTracker.set(pool, wrapped);
  return wrapped;
}
