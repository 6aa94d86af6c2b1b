// The API of a shop: products come from the cache until they are changed. `npm start`
import { setTimeout as wait } from "node:timers/promises";
import express from "express";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/express";
import { isTour, visit } from "../tour.mjs";

const products = new Map([
  ["1", { name: "lamp", price: 40 }],
  ["2", { name: "desk", price: 250 }],
]);
const tagOf = (id) => `product:${id}`;

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://" });
const app = express();
app.use("/products", httpCache({ cache, ttl: 300 }));

app.get("/products", async (_request, response) => {
  await wait(100); // a slow database
  // The list is made of every product, so it carries the tags of all.
  response.set("Cache-Tag", [...products.keys()].map(tagOf).join(","));
  response.json([...products.values()]);
});

app.get("/products/:id", async ({ params: { id } }, response) => {
  await wait(100);
  const product = products.get(id);
  if (product === undefined) response.sendStatus(404);
  else response.set("Cache-Tag", tagOf(id)).json(product);
});

app.put("/products/:id", async ({ params: { id }, query }, response) => {
  const product = products.get(id);
  if (product === undefined) return response.sendStatus(404);
  product.price = Number(query.price);
  await cache.invalidateTags(tagOf(id));
  response.json(product);
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", async (error) => {
  if (error) throw error; // the port is taken, say
  const address = `http://127.0.0.1:${server.address().port}`;
  console.log(`${address}/products/1`);
  if (!isTour) return;
  for (const path of ["/products/1", "/products/1", "/products", "/products/2"]) {
    await visit(address, `GET ${path}`);
  }
  await visit(address, "PUT /products/1?price=45");
  for (const path of ["/products/1", "/products", "/products/2"]) await visit(address, `GET ${path}`);
  server.close();
  await cache.disconnect();
});
