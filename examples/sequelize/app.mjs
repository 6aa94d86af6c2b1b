// Users over HTTP with Sequelize: reads come from the cache, a change is seen by the next read. `npm start`
import { createServer } from "node:http";
import pg from "pg";
import { DataTypes, Sequelize } from "sequelize";
import { XCache } from "xcache";
import { cachedModule } from "xcache/db/pg";

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", tables: { users: { ttl: 60 } } });
const dialectModule = cachedModule(pg, { cache, tableName: "users" });
const url = process.env.DATABASE_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";
const sequelize = new Sequelize(url, { dialectModule, logging: false });
const columns = { id: { type: DataTypes.INTEGER, primaryKey: true }, name: DataTypes.TEXT };
const User = sequelize.define("User", columns, { tableName: "users", timestamps: false });

await User.sync();
await User.findOrCreate({ where: { id: 1 }, defaults: { name: "Ada" } });

const find = (id) => User.findByPk(id);
const rename = (id, name) => User.update({ name }, { where: { id } });

async function answer({ method, url }) {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const id = Number(pathname.slice("/users/".length));
  if (method === "PUT") await rename(id, searchParams.get("name"));
  const started = performance.now();
  const user = await find(id);
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
