// Users over HTTP with prisma: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { cachedDependency, XCache } from "xcache";
import { PrismaClient } from "./client/index.js";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const session = new PrismaClient({ adapter: new PrismaPg(new pg.Pool()) });
const database = cachedDependency(() => session, { cache, tableName: "users" });

await session.$executeRawUnsafe("CREATE TABLE IF NOT EXISTS users (id int PRIMARY KEY, name text NOT NULL)");
await session.$executeRawUnsafe("INSERT INTO users VALUES (1, 'Ada') ON CONFLICT DO NOTHING");

const find = (db, id) => db.user.findUnique({ where: { id } });
const rename = (db, id, name) => db.user.update({ where: { id }, data: { name } });

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
