// Users over HTTP: reads come from the cache, and a change by any program is seen. `npm start`
import { createServer } from "node:http";
import pg from "pg";
import { cachedDependency, XCache } from "xcache";
import { postgresFeed } from "xcache/db/feed";

const cache = new XCache({
  kvUrl: process.env.XCACHE_KV_URL ?? "memory://",
  tables: { users: { ttl: 3600 } },
});
const pool = new pg.Pool();

await pool.query("CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)");
await pool.query("INSERT INTO users VALUES (1, 'Ada') ON CONFLICT DO NOTHING");
const { rowCount } = await pool.query("SELECT 1 FROM pg_publication WHERE pubname = 'xcache'");
if (rowCount === 0) await pool.query("CREATE PUBLICATION xcache FOR TABLE users");

const feed = postgresFeed({ connection: {}, cache, tables: "users", rows: true });
await feed.ready();
const database = cachedDependency(() => pool, { cache, tableName: "users", feed });

async function answer({ url }) {
  const id = Number(new URL(url, "http://localhost").pathname.slice("/users/".length));
  const started = performance.now();
  const { rows } = await database().query("SELECT id, name FROM users WHERE id = $1", [id]);
  return { user: rows[0], ms: Number((performance.now() - started).toFixed(2)), feed: feed.status() };
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
