// Two servers of an application on a Redis cluster. `XCACHE_KV_URL=redis+cluster://h1,h2,h3 npm start`
import { setTimeout as wait } from "node:timers/promises";
import { XCache } from "xcache";

const kvUrl = process.env.XCACHE_KV_URL ?? "";
if (!/^(redis|rediss|valkey|valkeys)\+cluster:/.test(kvUrl)) {
  console.error("Needs a Redis cluster: XCACHE_KV_URL=redis+cluster://127.0.0.1:7000,127.0.0.1:7001,...");
  process.exit(1);
}

// Two caches, each with copies of its own (`nearCache`), as two machines would have them.
const config = {
  kvUrl,
  keyPrefix: "cluster-example",
  nearCache: true,
  connectTimeout: 30,
  operationTimeout: 30,
};
const servers = [new XCache(config), new XCache(config)];
const [oslo, paris] = servers;
for (const server of servers) await server.connect();
const line = (what, result) => console.log(`${what.padEnd(62)} ${result}`);

const products = new Map(Array.from({ length: 500 }, (_, id) => [`product:${id}`, { id, price: id * 10 }]));
await oslo.setMany(products, { ttl: 600, tags: ["products"] });
line("Oslo stores 500 products, over all nodes", "done");

const started = performance.now();
const found = await paris.getMany([...products.keys()]);
line("Paris reads them in one call", `${found.size} in ${(performance.now() - started).toFixed(0)} ms`);

let loads = 0;
async function exchangeRate() {
  loads++;
  await wait(100);
  return 11.7;
}
const asked = servers.flatMap((server) =>
  Array.from({ length: 50 }, () => server.getOrSet("rate:nok", exchangeRate, { ttl: 60, tags: ["rates"] })),
);
await Promise.all(asked);
line("Both ask 50 times at once for a rate nobody has; loads", String(loads));

await oslo.invalidateTags("products");
const cut = performance.now();
while ((await paris.get("product:7")) !== undefined) await wait(1);
line(
  "Oslo invalidates the tag of all 500: gone in Paris after",
  `${(performance.now() - cut).toFixed(0)} ms`,
);
const left =
  (await paris.getMany([...products.keys()])).size + (await oslo.getMany([...products.keys()])).size;
line("Products that one of them still finds", String(left));
line("The rate, which has another tag", String(await paris.get("rate:nok")));
line("Health", (await paris.detailedHealthCheck()).status);

await oslo.clear();
for (const server of servers) await server.disconnect();
