// The cost of recording per hit: the same calls on two builds, alternating. `node bench/records/hit.mjs <dist before> <dist after>`
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const CALLS = 200_000;
const ROUNDS = 60;

const [before, after] = process.argv.slice(2).map((folder) => resolve(folder));
if (after === undefined) {
  console.error("usage: node bench/records/hit.mjs <dist of the version before> <dist of the version after>");
  process.exit(2);
}

/** @param {string} dist */
async function callsOf(dist) {
  const { XCache, cached } = await import(pathToFileURL(join(dist, "index.js")).href);
  const cache = new XCache({ kvUrl: "memory://" });
  await cache.set("user:1", 42, { ttl: 3_600 });
  const answer = cached(async (/** @type {number} */ id) => id, { cache, name: "answer", ttl: 3_600 });
  await answer(1);
  return {
    get: () => cache.get("user:1"),
    getOrSet: () => cache.getOrSet("user:1", () => 42),
    cached: () => answer(1),
  };
}

/** @param {() => Promise<unknown>} call */
async function nanosecondsOf(call) {
  const start = process.hrtime.bigint();
  for (let at = 0; at < CALLS; at++) await call();
  return Number(process.hrtime.bigint() - start) / CALLS;
}

const builds = [await callsOf(before), await callsOf(after)];
for (const name of /** @type {const} */ (["get", "getOrSet", "cached"])) {
  /** @type {number[][]} */
  const times = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    // Alternating and in either order, so that neither gets the quieter machine.
    for (const at of round % 2 === 0 ? [0, 1] : [1, 0])
      times[at]?.push(await nanosecondsOf(builds[at][name]));
  }
  const [old, now] = times.map((each) => each.toSorted((a, b) => a - b)[Math.floor(each.length / 4)]);
  const change = ((now / old - 1) * 100).toFixed(1);
  console.log(`${name}: ${old.toFixed(0)} ns before, ${now.toFixed(0)} ns after, ${change} %`);
}
