// Users over HTTP with postgres.js: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import postgres from "postgres";
import { cachedDependency, XCache } from "xcache";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const sql = postgres({ onnotice: () => {} });
const database = cachedDependency(() => sql, { cache, tableName: "users" });

await sql`CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)`;
await sql`INSERT INTO users VALUES (1, 'Ada') ON CONFLICT DO NOTHING`;

const find = async (db, id) => (await db`SELECT id, name FROM users WHERE id = ${id}`)[0];
const rename = (db, id, name) => db`UPDATE users SET name = ${name} WHERE id = ${id}`;

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
