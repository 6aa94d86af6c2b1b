// What recording costs a hit, in instructions, which do not depend on how busy the machine is. Needs valgrind and redis-server.
// `node bench/records/count.mjs <dist before> <dist after> [rounds]`
// A process warms up and makes N or 2N calls: the difference is N calls of compiled code, without start-up and compiler.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startServer } from "../kv/server.mjs";

const CALLS = 100_000;
const WARM_UP = 150_000;
/** That of the system's clock. */
const HITS_PER_READING = 32;

/** By name: the hit to count, on a cache of the store of that name. */
const CASES = {
  "an async function alone": { store: "memory", call: "bare" },
  "get, memory": { store: "memory", call: "get" },
  "getOrSet, memory": { store: "memory", call: "getOrSet" },
  "cached, memory": { store: "memory", call: "cached" },
  "cached without options, memory": { store: "memory", call: "plain" },
  "get, near tier": { store: "near", call: "get" },
  "getOrSet, near tier": { store: "near", call: "getOrSet" },
  "cached, near tier": { store: "near", call: "cached" },
};

/** Makes the calls of one case. @param {string} dist @param {string} name @param {number} calls @param {string} url */
async function run(dist, name, calls, url) {
  const { cached } = await import(pathToFileURL(join(dist, "index.js")).href);
  const { cacheWithClock, ManualClock } = await import(pathToFileURL(join(dist, "testing/index.js")).href);
  const { store, call } = CASES[/** @type {keyof typeof CASES} */ (name)];
  const config = store === "near" ? { kvUrl: url, nearCache: true } : { kvUrl: "memory://" };
  // Time stands still: under valgrind calls take fifty times as long, and what a cache does every second would be counted.
  const clock = Object.assign(new ManualClock(Date.now()), { hitsPerReading: HITS_PER_READING });
  const cache = cacheWithClock({ ...config, keyPrefix: "records" }, clock);
  await cache.set("user:1", 42, { ttl: 86_400 });
  let loads = 0;
  const load = async () => {
    loads++;
    return 42;
  };
  const bare = async () => 42;
  const answer = cached((/** @type {number} */ _id) => load(), { cache, name: "answer", ttl: 86_400 });
  const plain = cached((/** @type {number} */ _id) => load(), { cache, name: "plain" });
  /** A loop of its own for each case, so that only what is counted is compiled. */
  const loops = {
    bare: async (/** @type {number} */ count) => {
      for (let at = 0; at < count; at++) await bare();
    },
    get: async (/** @type {number} */ count) => {
      for (let at = 0; at < count; at++) await cache.get("user:1");
    },
    getOrSet: async (/** @type {number} */ count) => {
      for (let at = 0; at < count; at++) await cache.getOrSet("user:1", load);
    },
    cached: async (/** @type {number} */ count) => {
      for (let at = 0; at < count; at++) await answer(1);
    },
    plain: async (/** @type {number} */ count) => {
      for (let at = 0; at < count; at++) await plain(1);
    },
  };
  const loop = loops[/** @type {keyof typeof loops} */ (call)];
  await loop(10);
  const { totalHits: before } = await cache.getStats();
  await loop(WARM_UP + calls);
  const { totalHits: after } = await cache.getStats();
  if (call !== "bare" && after - before !== WARM_UP + calls) {
    throw new Error(
      `${name}: ${after - before} hits, not ${WARM_UP + calls}; the function ran ${loads} times`,
    );
  }
  process.exit(0);
}

/** Instructions of a whole process. @param {string} folder @param {readonly string[]} args */
function instructionsOf(folder, args) {
  const output = join(folder, "cachegrind.out");
  const own = [fileURLToPath(import.meta.url), "--run", ...args];
  const node = [
    "--single-threaded",
    "--hash-seed=1",
    "--random-seed=1",
    "--min-semi-space-size=16",
    "--max-semi-space-size=16",
  ];
  const valgrind = ["--tool=cachegrind", "--cache-sim=no", "-q", `--cachegrind-out-file=${output}`];
  // Its remarks about the processor are shown only with a failure.
  execFileSync("valgrind", [...valgrind, process.execPath, ...node, ...own], {
    stdio: ["ignore", "inherit", "pipe"],
  });
  return Number(/^summary: (\d+)/m.exec(readFileSync(output, "utf8"))?.[1]);
}

/** @param {string} before @param {string} after @param {number} rounds @param {RegExp} filter */
async function compare(before, after, rounds, filter) {
  const server = await startServer();
  const folder = mkdtempSync(join(tmpdir(), "xcache-records-"));
  console.log("| hit | instructions before | after | more | % |\n| --- | ---: | ---: | ---: | ---: |");
  for (const name of Object.keys(CASES).filter((each) => filter.test(each))) {
    const [old = Number.NaN, now = Number.NaN] = [before, after].map((dist) => {
      // The fewest: a compiler that runs at another moment only adds.
      const [one = 0, two = 0] = [CALLS, 2 * CALLS].map((calls) => {
        const args = [dist, name, String(calls), server.url];
        return Math.min(...Array.from({ length: rounds }, () => instructionsOf(folder, args)));
      });
      return (two - one) / CALLS;
    });
    const more = now - old;
    console.log(
      `| ${name} | ${old.toFixed(0)} | ${now.toFixed(0)} | ${more.toFixed(0)} | ${((more / old) * 100).toFixed(1)} |`,
    );
  }
  rmSync(folder, { recursive: true });
}

const [, , ...given] = process.argv;
if (given[0] === "--run") await run(given[1] ?? "", given[2] ?? "", Number(given[3]), given[4] ?? "");
else if (given[1] === undefined) {
  console.error(
    "usage: node bench/records/count.mjs <dist of the version before> <dist of the version after> [rounds] [cases]",
  );
  process.exit(2);
} else {
  await compare(
    resolve(given[0] ?? ""),
    resolve(given[1]),
    Number(given[2] ?? 3),
    new RegExp(given[3] ?? ""),
  );
  process.exit(0);
}
