// The sessions of node-postgres that cachedDependency recognises: a Pool, a Client or a pooled client.
import type { SessionAdapter } from "../../core/db-session.ts";
import { perSession } from "../tracking/proxy.ts";
import { watchClient, wrapClient } from "./client.ts";
import { isClient, isPool, type PgClient, type PgPool } from "./library.ts";
import { wrapPool } from "./pool.ts";

const pooled = perSession(wrapPool);

/** `cachedDependency` recognises these sessions on its own. */
export const pgSessions: SessionAdapter<PgClient | PgPool> = {
  name: "node-postgres",
  recognises: (session) => isClient(session) || isPool(session),
  dialect: () => "postgres",
  wrap: (session, tracker) =>
    isPool(session) ? pooled(session, tracker) : wrapClient(watchClient(session, tracker)),
};
