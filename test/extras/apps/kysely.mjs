import { Kysely, SqliteDialect } from "kysely";
import { cachedDependency, XCache } from "xcache";
import { cachedDialect } from "xcache/db/kysely";
import { checkSession, works } from "./check.mjs";
import { Database, path } from "./sqlite.mjs";

const cache = new XCache({ kvUrl: "memory://" });
const dialect = () => new SqliteDialect({ database: new Database(path) });
const rows = (session) => ({
  read: async () => (await session.selectFrom("users").select("name").executeTakeFirst()).name,
  rename: (name) =>
    session.transaction().execute((transaction) => transaction.updateTable("users").set({ name }).execute()),
});
const getSession = cachedDependency(() => new Kysely({ dialect: dialect() }), { cache, tableName: "users" });
await checkSession(cache, rows(await getSession()));
const watched = rows(new Kysely({ dialect: cachedDialect(dialect(), { cache, tableName: "users" }) }));
await watched.rename("Ada");
await checkSession(cache, watched);
works("kysely");
