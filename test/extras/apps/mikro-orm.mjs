import { EntitySchema, LibSqlDriver, MikroORM } from "@mikro-orm/libsql";
import { SqliteDialect } from "kysely";
import { XCache } from "xcache";
import { cachedDialect } from "xcache/db/kysely";
import { check, checkSession, works } from "./check.mjs";
import { Database, path } from "./sqlite.mjs";

const cache = new XCache({ kvUrl: "memory://" });
const User = new EntitySchema({
  name: "User",
  tableName: "users",
  properties: { id: { type: "integer", primary: true }, name: { type: "text" } },
});
const dialect = new SqliteDialect({ database: new Database(path) });
const orm = await MikroORM.init({
  driver: LibSqlDriver,
  dbName: path,
  entities: [User],
  driverOptions: cachedDialect(dialect, { cache, tableName: "users" }),
});
const read = async () => (await orm.em.fork().findOneOrFail(User, 1)).name;
const rename = (name) =>
  orm.em.fork().transactional(async (manager) => {
    const user = await manager.findOneOrFail(User, 1);
    user.name = name;
  });
await checkSession(cache, { read, rename });
const undone = orm.em.fork().transactional(async (manager) => {
  await manager.nativeUpdate(User, { id: 1 }, { name: "undone" });
  throw new Error("undo");
});
check(await undone.catch(({ message }) => message), "undo", "a transaction that fails");
check(await read(), "Grace", "a read after the rollback");
works("@mikro-orm/core", "kysely");
