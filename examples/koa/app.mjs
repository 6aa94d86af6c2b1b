// Baskets: pages of one user are cached for that user only. `npm start`
import { setTimeout as wait } from "node:timers/promises";
import Koa from "koa";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/koa";
import { isTour, visit } from "../tour.mjs";

const baskets = { ada: ["tea"], grace: ["milk"] };
const tagOf = (user) => `user:${user}`;

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://" });
const app = new Koa();

// Who it is comes first: the cache needs it for the key. A real application checks a real token here.
app.use((context, next) => {
  const user = /^Bearer (\w+)$/.exec(context.get("authorization"))?.[1];
  if (user === undefined || !Object.hasOwn(baskets, user)) context.throw(401);
  context.state.user = user;
  return next();
});

app.use(
  httpCache({
    cache,
    ttl: 60,
    user: ({ state }) => state.user,
    tags: ({ state }) => [tagOf(state.user)],
  }),
);

app.use(async (context) => {
  const { user } = context.state;
  if (context.method === "POST") {
    baskets[user].push(String(context.query.add));
    await cache.invalidateTags(tagOf(user));
  } else await wait(100); // a slow database
  context.body = { user, basket: baskets[user] };
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", async () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  console.log(`${address}/basket`);
  if (!isTour) return;
  const as = (user, request) => visit(address, request, { authorization: `Bearer ${user}` });
  for (const user of ["ada", "ada", "grace", "grace"]) await as(user, "GET /basket");
  await as("ada", "POST /items?add=cake");
  for (const user of ["ada", "grace"]) await as(user, "GET /basket");
  await visit(address, "GET /basket");
  server.close();
  await cache.disconnect();
});
