// `cachedDependency` with the adapters of all supported database libraries.
import { drizzleSessions } from "./db/drizzle/sessions.ts";
import { knexSessions } from "./db/knex.ts";
import { kyselySessions } from "./db/kysely/sessions.ts";
import { mysql2Sessions } from "./db/mysql2/sessions.ts";
import { pgSessions } from "./db/pg/sessions.ts";
import { postgresSessions } from "./db/postgres.ts";
import { prismaSessions } from "./db/prisma.ts";
import { trackSessions } from "./db/tracking/session.ts";
import { typeormSessions } from "./db/typeorm.ts";
import { type CachedDependency, dependencyWrapper } from "./functions/dependency.ts";

/**
 * Wraps what returns a database session: reads of the session are cached, its commits invalidate.
 *
 * @example
 * ```ts
 * const getPool = cachedDependency(() => pool, { cache, tableName: "users", ttl: "10m" });
 * await getPool().query("SELECT name FROM users WHERE id = $1", [1]); // cached
 * await getPool().query("UPDATE users SET name = 'Ada' WHERE id = 1"); // invalidates
 * ```
 */
export const cachedDependency: CachedDependency = dependencyWrapper({
  adapters: [
    ...[pgSessions, mysql2Sessions, knexSessions, kyselySessions],
    ...[drizzleSessions, typeormSessions, prismaSessions, postgresSessions],
  ],
  trackSessions,
});
