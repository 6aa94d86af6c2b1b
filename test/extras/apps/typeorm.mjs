import { DataSource, EntitySchema } from "typeorm";
import { cachedDependency, XCache } from "xcache";
import { typeormCache } from "xcache/db/typeorm";
import { check, checkSession, works } from "./check.mjs";
import { Database, path } from "./sqlite.mjs";

const cache = new XCache({ kvUrl: "memory://" });
const users = new EntitySchema({
  name: "User",
  tableName: "users",
  columns: { id: { type: Number, primary: true }, name: { type: String } },
});
const settings = { type: "better-sqlite3", database: path, driver: Database, entities: [users] };
const source = await new DataSource(settings).initialize();
const manager = await cachedDependency(() => source.manager, { cache, tableName: "users" })();
await checkSession(cache, {
  read: async () => (await manager.findOneByOrFail(users, { id: 1 })).name,
  rename: (name) => manager.transaction((inner) => inner.update(users, { id: 1 }, { name })),
});
const provider = typeormCache({ cache });
const cached = await new DataSource({ ...settings, cache: { provider } }).initialize();
const { totalHits } = await cache.getStats();
for (let at = 0; at < 2; at++) {
  const [user] = await cached.getRepository(users).find({ cache: true });
  check(user.name, "Grace", "a query with `cache`");
}
check((await cache.getStats()).totalHits > totalHits, true, "a query with `cache` came from the cache");
works("typeorm");
