// A shop with the dashboard under /admin/cache: a name and password to look, an audit trail of what is changed. `npm start`
import { createHash, timingSafeEqual } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import express from "express";
import { cached, XCache } from "xcache";
import { dashboard } from "xcache/dashboard";
import { isTour } from "../tour.mjs";

const PASSWORD = process.env.DASHBOARD_PASSWORD ?? "change me";
const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://", keyPrefix: "shop" });

const product = cached(
  async (id) => {
    await wait(20); // a slow database
    return {
      id,
      name: `Product ${id}`,
      supplier: { email: `sales-${id}@example.com`, apiKey: "never shown" },
    };
  },
  { cache, name: "product", ttl: 300, tags: (id) => ["products", `product:${id}`] },
);

const digest = (text) => createHash("sha256").update(text).digest();
const isRight = (given) => timingSafeEqual(digest(given), digest(`admin:${PASSWORD}`));

const board = dashboard({
  cache,
  authorize: (request) => {
    const [, basic = ""] = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    return isRight(Buffer.from(basic, "base64").toString()) && { user: "admin" };
  },
  values: true,
  redact: (path) => path.at(-1) === "email",
  writes: true,
  onAction: ({ user, action, key, tag, allowed }) =>
    console.log(`audit: ${user} ${allowed ? "did" : "tried to"} ${action} ${key ?? tag}`),
});

const app = express();
app.get("/products/:id", async (request, response) => response.json(await product(request.params.id)));
app.use("/admin/cache", (request, response, next) => {
  // The browser asks for name and password, and sends them along from then on.
  if (request.headers.authorization === undefined) response.set("www-authenticate", 'Basic realm="cache"');
  board.express(request, response, next);
});

async function show(address) {
  await Promise.all(Array.from({ length: 12 }, (_, at) => product(String(at % 4))));
  const ask = async (name, body, password = PASSWORD) => {
    const authorization = `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`;
    const headers = { "content-type": "application/json", authorization };
    const answer = await fetch(`${address}/admin/cache/api/${name}`, {
      ...{ method: "POST", headers, body: JSON.stringify(body) },
    });
    return answer.ok ? answer.json() : answer.status;
  };
  console.log(`a stranger: ${await ask("overview", {}, "guessed")}`);
  const { totals, functions } = await ask("overview", {});
  console.log(`${totals.totalKeys} entries, ${functions.length} function`);
  const key = product.key("1");
  const entry = await ask("entry", { key });
  console.log(
    `${key}: ${entry.type}, tags ${entry.tags.join(", ")}, email ${/email: '(.*)'/.exec(entry.value.text)[1]}`,
  );
  console.log(`invalidated: ${(await ask("invalidate", { tag: "products" })).invalidated}`);
  console.log(`left: ${(await cache.explain(key)).state}`);
}

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", async () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  console.log(
    `${address}/admin/cache/ (admin, ${process.env.DASHBOARD_PASSWORD ? "your password" : PASSWORD})`,
  );
  if (!isTour) return;
  await show(address);
  server.close();
  server.closeAllConnections();
  await cache.disconnect();
});
