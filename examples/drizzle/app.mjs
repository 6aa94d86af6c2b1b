// Users over HTTP with drizzle: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import pg from "pg";
import { cachedDependency, XCache } from "xcache";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const users = pgTable("users", { id: integer().primaryKey(), name: text().notNull() });
const session = drizzle(new pg.Pool());
const database = cachedDependency(() => session, { cache, tableName: "users" });

await session.execute(sql`CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)`);
await session.insert(users).values({ id: 1, name: "Ada" }).onConflictDoNothing();

const find = async (db, id) => (await db.select().from(users).where(eq(users.id, id)))[0];
const rename = (db, id, name) => db.update(users).set({ name }).where(eq(users.id, id));

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
