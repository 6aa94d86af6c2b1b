// Users in PostgreSQL: rows and whole answers are cached, and one commit ends both. `npm start`
import Fastify from "fastify";
import pg from "pg";
import { cachedDependency, tableTag, XCache } from "xcache";
import { httpCache } from "xcache/web/fastify";
import { isTour, visit } from "../tour.mjs";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const pool = new pg.Pool();
const database = cachedDependency(() => pool, { cache, tableName: "users" });

try {
  await pool.query("CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)");
  await pool.query("INSERT INTO users VALUES (1, 'Ada'), (2, 'Alan') ON CONFLICT DO NOTHING");
} catch (error) {
  console.error(
    `Needs a PostgreSQL server; say where in PGHOST, PGPORT, PGUSER, PGDATABASE. (${error.code})`,
  );
  process.exit(1);
}

const app = Fastify();
// The tag that a commit of `users` invalidates: answers made of its rows end with them.
app.register(httpCache({ cache, ttl: 60, tags: [tableTag("users")] }));
app.register(async (users) => {
  users.get("/users", async () => {
    const { rows } = await database().query("SELECT id, name FROM users ORDER BY id");
    return rows;
  });
  users.get("/users/:id", async ({ params }, reply) => {
    const { rows } = await database().query("SELECT id, name FROM users WHERE id = $1", [params.id]);
    return rows[0] ?? reply.code(404).send({ error: "no such user" });
  });
  users.put("/users/:id", async ({ params, query }) => {
    const { rowCount } = await database().query("UPDATE users SET name = $2 WHERE id = $1", [
      params.id,
      query.name,
    ]);
    return { changed: rowCount };
  });
});

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
console.log(`${address}/users/1`);
if (isTour) {
  for (const path of ["/users/1", "/users/1", "/users"]) await visit(address, `GET ${path}`);
  await visit(address, "PUT /users/1?name=Grace");
  for (const path of ["/users/1", "/users", "/users"]) await visit(address, `GET ${path}`);
  await app.close();
  await pool.end();
  await cache.disconnect();
}
