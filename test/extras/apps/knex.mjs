import knex from "knex";
import { cachedDependency, XCache } from "xcache";
import { checkSession, works } from "./check.mjs";
import { path } from "./sqlite.mjs";

const cache = new XCache({ kvUrl: "memory://" });
const raw = knex({ client: "better-sqlite3", connection: { filename: path }, useNullAsDefault: true });
const session = await cachedDependency(() => raw, { cache, tableName: "users" })();
await checkSession(cache, {
  read: async () => (await session("users").where({ id: 1 }).first()).name,
  rename: (name) =>
    session.transaction((transaction) => transaction("users").where({ id: 1 }).update({ name })),
});
works("knex");
