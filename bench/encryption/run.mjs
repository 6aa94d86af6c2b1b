// The cost of encryption per hit on Redis: `node bench/encryption/run.mjs`. Plain, encrypted and with hidden keys, alternating, 64 in flight.
import { XCache } from "../../dist/index.js";
import { startServer } from "../kv/server.mjs";

const ROUNDS = 7;
const CALLS = 20_000;
const IN_FLIGHT = 64;
const KEYS = 1_000;
const keys = { a: "a secret of the benchmark" };
const WAYS = {
  plain: {},
  encrypted: { encryption: { keys } },
  hidden: { encryption: { keys, hideKeys: true } },
};
const VALUES = { "200 B": 200, "10 KB": 10_240 };

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Microseconds of this process's CPU time per hit. */
async function hits(cache) {
  let sent = 0;
  const one = async () => {
    while (sent < CALLS)
      if ((await cache.get(`key:${sent++ % KEYS}`)) === undefined) throw new Error("a miss");
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

const server = await startServer();
for (const [size, bytes] of Object.entries(VALUES)) {
  const value = { text: "x".repeat(bytes - 10) };
  const caches = Object.entries(WAYS).map(([name, config]) => ({
    name,
    cache: new XCache({ kvUrl: server.url, keyPrefix: `${name} ${bytes}`, operationTimeout: 10, ...config }),
    figures: [],
  }));
  for (const { cache } of caches)
    for (let at = 0; at < KEYS; at++) await cache.set(`key:${at}`, value, { ttl: 3_600 });
  for (const { cache } of caches) await hits(cache);
  for (let round = 0; round < ROUNDS; round++)
    for (const each of caches) each.figures.push(await hits(each.cache));
  const plain = median(caches[0].figures);
  for (const { name, figures, cache } of caches) {
    const us = median(figures);
    console.log(
      `${size}  ${name.padEnd(9)} ${us.toFixed(1)} us CPU a hit, ${(us / plain).toFixed(2)} of plain`,
    );
    await cache.disconnect();
  }
}
process.exit(0);
