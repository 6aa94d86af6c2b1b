// Users over HTTP with typeorm: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import { DataSource, EntitySchema } from "typeorm";
import { cachedDependency, XCache } from "xcache";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const User = new EntitySchema({
  name: "User",
  tableName: "users",
  columns: { id: { type: Number, primary: true }, name: { type: String } },
});
const { PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE } = process.env;
const session = new DataSource({
  type: "postgres",
  host: PGHOST,
  port: Number(PGPORT ?? 5432),
  username: PGUSER,
  password: PGPASSWORD,
  database: PGDATABASE,
  entities: [User],
});
const database = cachedDependency(() => session, { cache, tableName: "users" });

await session.initialize();
await session.query("CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)");
await session.query("INSERT INTO users VALUES (1, 'Ada') ON CONFLICT DO NOTHING");

const find = (db, id) => db.getRepository(User).findOneBy({ id });
const rename = (db, id, name) => db.getRepository(User).update({ id }, { name });

async function answer({ method, url }) {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const id = Number(pathname.slice("/users/".length));
  const db = database();
  if (method === "PUT") await rename(db, id, searchParams.get("name"));
  const started = performance.now();
  const user = await find(db, id);
  return { user, ms: Number((performance.now() - started).toFixed(2)) };
}

const server = createServer((request, response) => {
  answer(request).then(
    (body) => response.end(`${JSON.stringify(body)}\n`),
    (error) => response.writeHead(500).end(`${error.message}\n`),
  );
});
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/users/1`);
});
