import { eq } from "drizzle-orm";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import { cachedDependency, MissingPeerError, XCache } from "xcache";
import { drizzleCache } from "xcache/db/drizzle";
import { check, checkSession, versionOf, works } from "./check.mjs";
import { Database, path } from "./sqlite.mjs";

const cache = new XCache({ kvUrl: "memory://" });
const users = sqliteTable("users", { id: integer().primaryKey(), name: text().notNull() });
const database = new Database(path);
const raw = drizzle(async (sql, params, method) => {
  const statement = database.prepare(sql);
  if (!statement.reader) {
    statement.run(...params);
    return { rows: [] };
  }
  const rows = statement.raw().all(...params);
  return { rows: method === "get" ? rows[0] : rows };
});
const session = await cachedDependency(() => raw, { cache, tableName: "users" })();
await checkSession(cache, {
  read: async () => (await session.select().from(users).where(eq(users.id, 1)))[0].name,
  rename: (name) =>
    session.transaction((transaction) => transaction.update(users).set({ name }).where(eq(users.id, 1))),
});
let refusal = "none";
try {
  drizzleCache({ cache });
} catch (error) {
  if (!(error instanceof MissingPeerError)) throw error;
  refusal = error.code;
}
const isOld =
  Number(versionOf("drizzle-orm").split(".")[1]) < 44 && versionOf("drizzle-orm").startsWith("0.");
check(refusal, isOld ? "PEER_VERSION" : "none", "the refusal of drizzleCache");
works("drizzle-orm");
