// Users over HTTP with kysely: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { cachedDependency, XCache } from "xcache";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const session = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool() }) });
const database = cachedDependency(() => session, { cache, tableName: "users" });

await sql`CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)`.execute(session);
await sql`INSERT INTO users VALUES (1, 'Ada') ON CONFLICT DO NOTHING`.execute(session);

const find = (db, id) => db.selectFrom("users").selectAll().where("id", "=", id).executeTakeFirst();
const rename = (db, id, name) => db.updateTable("users").set({ name }).where("id", "=", id).execute();

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
