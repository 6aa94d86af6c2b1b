// The claims of the comparison table about other libraries that can be tested: run on a separate Redis, with the versions of bench/.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

/** @type {{ startServer(): Promise<{ url: string, command(...words: string[]): Promise<unknown> }> }} */
const { startServer } = await import(new URL("../../bench/kv/server.mjs", import.meta.url).href);
const bench = createRequire(new URL("../../bench/package.json", import.meta.url));
/** @param {string} name */
const load = (name) => import(pathToFileURL(bench.resolve(name)).href);

const LOAD_MS = 200;
const TTL_SECONDS = 60;

/**
 * @typedef {{ read(key: string): Promise<unknown>, remove(key: string): Promise<unknown> }} Instance
 * @typedef {(url: string, load: () => Promise<unknown>) => Promise<Instance>} Open
 */

/** @type {Record<string, Open>} */
const libraries = {
  async xcache(url, fetchValue) {
    const { XCache } = await import("xcache");
    const cache = new XCache({ kvUrl: url, defaultTtl: TTL_SECONDS });
    return { read: (key) => cache.getOrSet(key, fetchValue), remove: (key) => cache.delete(key) };
  },
  async bentocache(url, fetchValue) {
    const { BentoCache, bentostore } = await load("bentocache");
    const { redisDriver } = await load("bentocache/drivers/redis");
    const { Redis } = await load("ioredis");
    const store = bentostore().useL2Layer(redisDriver({ connection: new Redis(url) }));
    const bento = new BentoCache({ default: "redis", ttl: TTL_SECONDS * 1000, stores: { redis: store } });
    return {
      read: (key) => bento.getOrSet({ key, factory: fetchValue }),
      remove: (key) => bento.delete({ key }),
    };
  },
  async cacheable(url, fetchValue) {
    const { createKeyv } = await load("@keyv/redis");
    const { Cacheable } = await load("cacheable");
    const cache = new Cacheable({ primary: createKeyv(url), ttl: TTL_SECONDS * 1000 });
    return { read: (key) => cache.getOrSet(key, fetchValue), remove: (key) => cache.delete(key) };
  },
  async "cache-manager"(url, fetchValue) {
    const { createKeyv } = await load("@keyv/redis");
    const { createCache } = await load("cache-manager");
    const cache = createCache({ stores: [createKeyv(url)], ttl: TTL_SECONDS * 1000 });
    return { read: (key) => cache.wrap(key, fetchValue), remove: (key) => cache.del(key) };
  },
  async "layered-loader"(url, fetchValue) {
    const { Loader, RedisCache } = await load("layered-loader");
    const { Redis } = await load("ioredis");
    const ttlInMsecs = TTL_SECONDS * 1000;
    const loader = new Loader({
      asyncCache: new RedisCache(new Redis(url), { json: true, ttlInMsecs }),
      dataSourceGetOneFn: fetchValue,
    });
    return { read: (key) => loader.get(key), remove: (key) => loader.invalidateCacheFor(key) };
  },
  async "async-cache-dedupe"(url, fetchValue) {
    const { createCache } = await load("async-cache-dedupe");
    const { Redis } = await load("ioredis");
    const options = { client: new Redis(url), invalidation: { referencesTTL: TTL_SECONDS } };
    const cache = createCache({ ttl: TTL_SECONDS, storage: { type: "redis", options } });
    cache.define("read", fetchValue);
    return { read: (key) => cache.read(key), remove: (key) => cache.clear("read", key) };
  },
};

/**
 * Whether a value loaded before a removal is served after it.
 * @param {Open} open
 * @param {string} url
 * @param {boolean} otherRemoves whether another instance removes, not the one that loads
 */
async function comesBack(open, url, otherRemoves) {
  let source = "old";
  /** @type {() => void} */
  let begin = () => {};
  /** @type {Promise<void>} */
  const hasBegun = new Promise((resolve) => {
    begin = resolve;
  });
  const fetchValue = async () => {
    const value = source;
    begin();
    await wait(LOAD_MS);
    return value;
  };
  const loading = await open(url, fetchValue);
  const other = await open(url, fetchValue);
  const later = await open(url, fetchValue);
  const key = `key-${otherRemoves}`;
  const read = loading.read(key);
  await hasBegun;
  await wait(LOAD_MS / 2);
  source = "new";
  await (otherRemoves ? other : loading).remove(key);
  await read;
  await wait(LOAD_MS / 2);
  return (await later.read(key)) === "old";
}

/**
 * How long a read takes when its store does not answer; `limitMs` is when waiting ends.
 * @param {Open} open
 * @param {Awaited<ReturnType<typeof startServer>>} server
 */
async function readOfSilentStore(open, server, limitMs = 5_000) {
  const instance = await open(server.url, async () => "fresh");
  await instance.read("warm");
  await server.command("CLIENT", "PAUSE", String(2 * limitMs), "ALL");
  const started = performance.now();
  const end = await Promise.race([
    instance.read("other").then(
      () => "answers",
      () => "fails",
    ),
    wait(limitMs).then(() => undefined),
  ]);
  return end === undefined
    ? `hangs for more than ${limitMs / 1000} s`
    : `${end} after ${((performance.now() - started) / 1000).toFixed(1)} s`;
}

const [asked] = process.argv.slice(2);
if (asked === undefined) {
  // One process each: some clients never release their connection.
  for (const name of Object.keys(libraries)) {
    spawnSync(process.execPath, [fileURLToPath(import.meta.url), name], { stdio: "inherit" });
  }
} else {
  const open = libraries[asked];
  if (open === undefined) throw new Error(`known are ${Object.keys(libraries).join(", ")}; got ${asked}`);
  const server = await startServer();
  const yesNo = (/** @type {boolean} */ answer) => (answer ? "yes" : "no");
  console.log(asked);
  console.log(
    `  deleted during its load, is served again: ${yesNo(await comesBack(open, server.url, false))}`,
  );
  console.log(
    `  the same, deleted by another process:     ${yesNo(await comesBack(open, server.url, true))}`,
  );
  console.log(`  a read while the store does not answer:   ${await readOfSilentStore(open, server)}`);
  process.exit(0);
}
