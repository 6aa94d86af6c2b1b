// node-postgres: wraps a Pool, a Client or a pooled client for cachedDependency.
import type { SessionAdapter } from "../core/db-session.ts";
import { watchClient, wrapClient } from "./pg/client.ts";
import { isClient, isPool, type PgClient, type PgPool } from "./pg/library.ts";
import { wrapPool } from "./pg/pool.ts";
import { perSession } from "./tracking/proxy.ts";

export type { PgClient, PgPool } from "./pg/library.ts";

const pooled = perSession(wrapPool);

/** `cachedDependency` recognises these sessions on its own. */
export const pgSessions: SessionAdapter<PgClient | PgPool> = {
  name: "node-postgres",
  recognises: (session) => isClient(session) || isPool(session),
  dialect: () => "postgres",
  wrap: (session, tracker) =>
    isPool(session) ? pooled(session, tracker) : wrapClient(watchClient(session, tracker)),
};
