// Forecasts from a slow service: a crowd that asks at once is one call to it. `npm start`
import { setTimeout as wait } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/hono";
import { isTour, visit } from "../tour.mjs";

const CROWD = 20;
let calls = 0;
async function forecast(city) {
  calls++;
  await wait(200); // a slow service
  return { city, celsius: 10 + city.length };
}

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://" });
const app = new Hono();
const terms = { cache, ttl: 600, staleIfError: 3600, tags: ["forecasts"] };
app.use("/forecasts/*", httpCache(terms, app));
app.get("/forecasts/:city", async (context) => context.json(await forecast(context.req.param("city"))));
app.post("/new-data", async (context) => {
  await cache.invalidateTags("forecasts");
  return context.text("every forecast is made anew");
});

async function show(address) {
  await Promise.all(Array.from({ length: CROWD }, () => fetch(`${address}/forecasts/oslo`)));
  console.log(`${CROWD} visitors at once, calls of the slow service: ${calls}`);
  await visit(address, "GET /forecasts/oslo");
  await visit(address, "POST /new-data");
  await visit(address, "GET /forecasts/oslo");
  await visit(address, "GET /forecasts/oslo");
}

const port = Number(process.env.PORT ?? 3000);
const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" }, async (info) => {
  const address = `http://127.0.0.1:${info.port}`;
  console.log(`${address}/forecasts/oslo`);
  if (!isTour) return;
  await show(address);
  server.close();
  await cache.disconnect();
});
