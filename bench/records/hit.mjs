// What recording costs a hit, in CPU time: the same calls on two builds, in turns.
// `node bench/records/hit.mjs <dist before> <dist after> [rounds]`
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const CALLS = 200_000;

const [, , ...given] = process.argv;
const [before, after] = given.slice(0, 2).map((folder) => resolve(folder));
const ROUNDS = Number(given[2] ?? 60);
if (after === undefined) {
  console.error(
    "usage: node bench/records/hit.mjs <dist of the version before> <dist of the version after> [rounds]",
  );
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

/** CPU time, not wall time: another program on the machine must not count. */
const cpuMicroseconds = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** @param {() => Promise<unknown>} call */
async function nanosecondsOf(call) {
  const start = cpuMicroseconds();
  for (let at = 0; at < CALLS; at++) await call();
  return ((cpuMicroseconds() - start) * 1_000) / CALLS;
}

/**
 * @param {readonly number[]} values
 * @param {number} share
 */
const quantile = (values, share) =>
  values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) * share)] ?? Number.NaN;

const builds = [await callsOf(before), await callsOf(after)];
for (const name of /** @type {const} */ (["get", "getOrSet", "cached"])) {
  /** @type {number[][]} */
  const times = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    // In turns and in either order, so that neither has the quieter machine.
    for (const at of round % 2 === 0 ? [0, 1] : [1, 0])
      times[at]?.push(await nanosecondsOf(builds[at][name]));
  }
  const [old, now] = times.map((each) => quantile(each, 0.5));
  // Round by round: what slows both at once cancels out.
  const changes = times[0].map((each, round) => (times[1][round] / each - 1) * 100);
  // The standard error of a median is about 1.25 times that of a mean; a normal quartile is 0.67 deviations away.
  const deviation = (quantile(changes, 0.75) - quantile(changes, 0.25)) / 1.35;
  const error = (1.25 * deviation) / Math.sqrt(ROUNDS);
  console.log(
    `${name}: ${old.toFixed(0)} ns before, ${now.toFixed(0)} ns after, ` +
      `${quantile(changes, 0.5).toFixed(1)} % ± ${(2 * error).toFixed(1)}`,
  );
}
