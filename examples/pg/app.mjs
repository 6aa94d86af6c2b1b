// Users over HTTP: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import pg from "pg";
import { cachedDependency, XCache } from "xcache";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const pool = new pg.Pool();
const database = cachedDependency(() => pool, { cache, tableName: "users" });

await pool.query("CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)");
await pool.query("INSERT INTO users VALUES (1, 'Ada') ON CONFLICT DO NOTHING");

async function answer({ method, url }) {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const id = Number(pathname.slice("/users/".length));
  const db = database();
  if (method === "PUT")
    await db.query("UPDATE users SET name = $2 WHERE id = $1", [id, searchParams.get("name")]);
  const started = performance.now();
  const { rows } = await db.query("SELECT id, name FROM users WHERE id = $1", [id]);
  return { user: rows[0], ms: Number((performance.now() - started).toFixed(2)) };
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
