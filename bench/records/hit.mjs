// What recording costs a hit, in CPU time: the same calls on two builds, each in a process of its own, in turns.
// `node bench/records/hit.mjs <dist before> <dist after> [rounds]`
// In one process the second of two equal builds is up to 11 % slower: what they share is optimized for the first.
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const NAMES = /** @type {const} */ (["get", "getOrSet", "cached"]);
const CALLS = 200_000;
/** Samples of one process; the first are taken while the code is still being compiled. */
const SAMPLES = 12;
const WARM_UP = 4;

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

/** Measures one build and prints the nanoseconds of each call. @param {string} dist */
async function measure(dist) {
  const { XCache, cached } = await import(pathToFileURL(join(dist, "index.js")).href);
  const cache = new XCache({ kvUrl: "memory://" });
  await cache.set("user:1", 42, { ttl: 3_600 });
  const answer = cached(async (/** @type {number} */ id) => id, { cache, name: "answer", ttl: 3_600 });
  await answer(1);
  const calls = {
    get: () => cache.get("user:1"),
    getOrSet: () => cache.getOrSet("user:1", () => 42),
    cached: () => answer(1),
  };
  /** @type {Record<string, number>} */
  const figures = {};
  for (const name of NAMES) {
    const samples = [];
    for (let at = 0; at < SAMPLES; at++) samples.push(await nanosecondsOf(calls[name]));
    figures[name] = quantile(samples.slice(WARM_UP), 0.5);
  }
  console.log(JSON.stringify(figures));
}

/** @param {string} before @param {string} after @param {number} rounds */
function compare(before, after, rounds) {
  const self = fileURLToPath(import.meta.url);
  /** @param {string} dist @returns {Record<string, number>} */
  const run = (dist) =>
    JSON.parse(execFileSync(process.execPath, [self, "--measure", dist], { encoding: "utf8" }));
  /** @type {[Record<string, number>, Record<string, number>][]} */
  const pairs = [];
  for (let round = 0; round < rounds; round++) {
    // In either order, so that neither has the quieter machine.
    if (round % 2 === 0) pairs.push([run(before), run(after)]);
    else pairs.push(/** @type {typeof pairs[number]} */ ([run(after), run(before)].reverse()));
  }
  for (const name of NAMES) {
    const [old, now] = [0, 1].map((at) =>
      quantile(
        pairs.map((pair) => pair[at][name]),
        0.5,
      ),
    );
    // Pair by pair: what slows both at once cancels out.
    const changes = pairs.map(([one, other]) => (other[name] / one[name] - 1) * 100);
    // The standard error of a median is about 1.25 times that of a mean; a normal quartile is 0.67 deviations away.
    const deviation = (quantile(changes, 0.75) - quantile(changes, 0.25)) / 1.35;
    const error = (1.25 * deviation) / Math.sqrt(rounds);
    console.log(
      `${name}: ${old.toFixed(0)} ns before, ${now.toFixed(0)} ns after, ` +
        `${quantile(changes, 0.5).toFixed(1)} % ± ${(2 * error).toFixed(1)}`,
    );
  }
}

const [, , ...given] = process.argv;
if (given[0] === "--measure") await measure(/** @type {string} */ (given[1]));
else if (given[1] === undefined) {
  console.error(
    "usage: node bench/records/hit.mjs <dist of the version before> <dist of the version after> [rounds]",
  );
  process.exitCode = 2;
} else compare(resolve(given[0]), resolve(given[1]), Number(given[2] ?? 20));
