// postgres.js: wraps `sql`, a transaction of it or a reserved connection for cachedDependency.
import type { SessionAdapter } from "../core/db-session.ts";
import { isSql, type Sql } from "./postgres/library.ts";
import { wrapSql } from "./postgres/session.ts";
import { perSession } from "./tracking/proxy.ts";

/** `cachedDependency` recognises these sessions on its own. */
export const postgresSessions: SessionAdapter = {
  name: "postgres.js",
  recognises: (session): session is object => isSql(session),
  dialect: () => "postgres",
  wrap: perSession((session, tracker) => wrapSql(session as Sql, tracker)),
};
