// What must work with nothing but the package itself. Arguments: addresses of stores to try as well.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { createRequire } from "node:module";
import { cached, VERSION, XCache } from "xcache";
import { httpCache } from "xcache/web/fetch";

const require = createRequire(import.meta.url);
strictEqual(require("xcache").XCache, XCache, "require gives the same module as import");
strictEqual(VERSION, require("xcache/package.json").version);

/** The operations that everything else is made of. */
async function useStore(kvUrl) {
  const cache = new XCache({ kvUrl, keyPrefix: "smoke", connectTimeout: 20, operationTimeout: 20 });
  await cache.connect();
  const value = { at: new Date(0), tags: new Set(["a"]), big: 2n ** 70n };
  await cache.set("a key", value, { ttl: 60, tags: ["some"] });
  deepStrictEqual(await cache.get("a key"), value);
  let loads = 0;
  const square = cached(async (n) => ++loads && n * n, { cache, name: "square", ttl: 60 });
  deepStrictEqual(await Promise.all([square(4), square(4), square(4)]), [16, 16, 16]);
  strictEqual(loads, 1);
  await cache.invalidateTags("some");
  strictEqual(await cache.get("a key"), undefined);
  strictEqual((await cache.healthCheck()).isHealthy, true);
  await cache.clear();
  await cache.disconnect();
}

async function searchAlike() {
  const cache = new XCache({ kvUrl: "memory://", enableFuzzy: true });
  await cache.set("user:profile", 1);
  const [first] = await cache.fuzzySearch("user:profil");
  strictEqual(first?.key, "user:profile");
  await cache.disconnect();
}

async function answerRequests() {
  const cache = new XCache({ kvUrl: "memory://" });
  const handler = httpCache({ cache })(() => new Response("page"));
  const ask = () => handler(new Request("http://localhost/"));
  await (await ask()).text();
  ok((await ask()).headers.get("cache-status")?.includes("hit"));
  await cache.disconnect();
}

const stores = ["memory://", ...process.argv.slice(2)];
for (const kvUrl of stores) await useStore(kvUrl);
await searchAlike();
await answerRequests();
const kinds = stores.map((kvUrl) => new URL(kvUrl).protocol.slice(0, -1));
console.log(`works with ${kinds.join(", ")} on Node ${process.versions.node}`);
