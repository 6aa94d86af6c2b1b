// Users over HTTP with mysql2: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import mysql from "mysql2/promise";
import { cachedDependency, XCache } from "xcache";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const pool = mysql.createPool(process.env.DATABASE_URL ?? "mysql://root@127.0.0.1:3306/test");
const database = cachedDependency(() => pool, { cache, tableName: "users" });

await pool.query("CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name varchar(100) NOT NULL)");
await pool.query("INSERT IGNORE INTO users VALUES (1, 'Ada')");

async function find(db, id) {
  const [rows] = await db.execute("SELECT id, name FROM users WHERE id = ?", [id]);
  return rows[0];
}
const rename = (db, id, name) => db.execute("UPDATE users SET name = ? WHERE id = ?", [name, id]);

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
