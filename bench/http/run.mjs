// `npm run bench:http [-- --only <framework>]... [--rounds <n>] [--seconds <n>]`: requests per second with the HTTP cache in front of a
// handler, as a ratio to the bare framework with the same constant in the same round. A run of all frameworks with at least five
// rounds takes about eleven minutes and is kept in bench/http/results.md once it is complete.
import { execFileSync, fork, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { whyStale } from "../../scripts/build/build.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

const FRAMEWORKS = ["node", "express", "fastify", "koa", "hono"];
const SIZES = [1_024, 51_200];
const CONNECTIONS = 32;
/** The minimum number of rounds for results that are kept. */
const LEAST_ROUNDS = 5;

/**
 * Requests per second, one figure per round. A 304 is compared with the whole body of the bare framework, which cannot answer it.
 * @typedef {{ bare: number[], cached: Record<"hit" | "304", number[]> }} Rates
 */

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "3" },
    },
  });
  const unknown = values.only.find((name) => !FRAMEWORKS.includes(name));
  if (unknown !== undefined)
    throw new Error(`--only: expected one of ${FRAMEWORKS.join(", ")}, got ${unknown}`);
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (!(rounds >= 1 && seconds >= 1)) throw new Error("--rounds and --seconds must be numbers of at least 1");
  const frameworks = values.only.length === 0 ? FRAMEWORKS : values.only;
  return { frameworks, rounds, seconds, isKept: values.only.length === 0 && rounds >= LEAST_ROUNDS };
}

/** @param {string} command */
function isThere(command) {
  try {
    execFileSync("which", [command], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function requireTools() {
  for (const [command, install] of Object.entries({
    wrk: "apt-get install -y wrk",
    taskset: "apt-get install -y util-linux",
  })) {
    if (!isThere(command)) throw new Error(`${command} is missing. Install it with: ${install}`);
  }
  if (os.availableParallelism() < 2)
    throw new Error("server and client need a core each; this machine has one");
  const stale = whyStale();
  if (stale !== undefined) throw new Error(`${stale}: run npm run build`);
}

/**
 * A fresh server on the first core.
 * @param {string} framework
 * @param {"bare" | "cached"} variant
 * @param {number} size
 */
async function startServer(framework, variant, size) {
  const server = fork(here("server.mjs"), [framework, variant, String(size)], {
    execPath: "taskset",
    execArgv: ["-c", "0", process.execPath],
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    env: { ...process.env, NODE_ENV: "production" },
  });
  const port = await new Promise((resolve, reject) => {
    server.stdout?.once("data", (data) => resolve(Number(String(data))));
    server.once("exit", () => reject(new Error(`the server of ${framework} ended at once`)));
  });
  return { url: `http://127.0.0.1:${port}/`, stop: () => server.kill() };
}

/**
 * Requests per second, from the second core.
 * @param {string} url
 * @param {number} seconds
 * @param {string[]} headers
 * @returns {Promise<number>}
 */
function load(url, seconds, headers = []) {
  const fields = headers.flatMap((header) => ["-H", header]);
  const wrk = spawn(
    "taskset",
    ["-c", "1", "wrk", "-t1", `-c${CONNECTIONS}`, `-d${seconds}s`, ...fields, url],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let text = "";
  wrk.stdout.on("data", (data) => {
    text += data;
  });
  return new Promise((resolve, reject) => {
    wrk.once("error", reject);
    wrk.once("close", () => {
      const rate = /Requests\/sec:\s+([\d.]+)/.exec(text)?.[1];
      if (rate === undefined || /Non-2xx|Socket errors/.test(text)) reject(new Error(`wrk said:\n${text}`));
      else resolve(Number(rate));
    });
  });
}

/**
 * Makes sure that each response is what its measurement claims.
 * @param {string} url
 * @param {number} size
 */
async function etagOfHit(url, size) {
  await fetch(url).then((response) => response.text());
  const response = await fetch(url);
  const said = response.headers.get("cache-status");
  const length = (await response.arrayBuffer()).byteLength;
  if (!said?.includes("hit") || length !== size)
    throw new Error(`not a hit of ${size} bytes: ${said}, ${length}`);
  const etag = response.headers.get("etag") ?? "";
  const { status } = await fetch(url, { headers: { "if-none-match": etag } });
  if (status !== 304) throw new Error(`expected 304, got ${status}`);
  return etag;
}

/**
 * @param {string} framework
 * @param {number} size
 * @param {number} seconds
 * @param {Rates} rates
 */
async function runRound(framework, size, seconds, rates) {
  const bare = await startServer(framework, "bare", size);
  try {
    await load(bare.url, 1);
    rates.bare.push(await load(bare.url, seconds));
  } finally {
    bare.stop();
  }
  const cached = await startServer(framework, "cached", size);
  try {
    const etag = await etagOfHit(cached.url, size);
    await load(cached.url, 1);
    rates.cached.hit.push(await load(cached.url, seconds));
    await load(cached.url, 1, [`If-None-Match: ${etag}`]);
    rates.cached[304].push(await load(cached.url, seconds, [`If-None-Match: ${etag}`]));
  } finally {
    cached.stop();
  }
}

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [below = Number.NaN, above = Number.NaN] = sorted.slice(middle - 1, middle + 1);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? Number.NaN) : (below + above) / 2;
}

/**
 * The ratio within each round: a temporary slowdown of the machine affects both.
 * @param {number[]} rates
 * @param {number[]} bare
 */
function ratios(rates, bare) {
  const each = rates.map((rate, round) => rate / (bare[round] ?? Number.NaN));
  return `${median(each).toFixed(2)} (${Math.min(...each).toFixed(2)} to ${Math.max(...each).toFixed(2)})`;
}

/** What is aimed at, for every size, for hits and for 304s. @type {Record<string, number>} */
const GOALS = { node: 0.88, express: 1.15, fastify: 0.78, koa: 0.82, hono: 0.55 };

/** @param {Map<string, Rates>} results @param {number} rounds @param {number} seconds */
function report(results, rounds, seconds) {
  const rows = [...results].map(([name, { bare, cached }]) => {
    const rate = Math.round(median(bare)).toLocaleString("en-US");
    const goal = GOALS[name.split(",")[0] ?? ""];
    return `| ${name} | ${rate} | ${ratios(cached.hit, bare)} | ${ratios(cached[304], bare)} | ${goal} |`;
  });
  const processor = os.cpus()[0]?.model.trim() || os.arch();
  return [
    "# Throughput of the HTTP cache",
    "",
    "`npm run bench:http` writes this page. Requests a second with the cache on the memory store in front of a handler that answers with a",
    "constant, divided by those of the same handler without it in the same round: median, least and most of the rounds. Above 1 the cache",
    "is faster than the framework.",
    "",
    `Node ${process.version}, ${processor}, ${os.platform()}; ${rounds} rounds with fresh processes, ${seconds} s each after 1 s to warm up, wrk with ${CONNECTIONS}`,
    "connections on a core of its own.",
    "",
    "| framework, body | bare, requests/s | hit | 304 | goal |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}

async function main() {
  const { frameworks, rounds, seconds, isKept } = readOptions();
  requireTools();
  /** @type {Map<string, Rates>} */
  const results = new Map();
  for (let round = 1; round <= rounds; round++) {
    for (const framework of frameworks) {
      for (const size of SIZES) {
        const name = `${framework}, ${size / 1_024} KB`;
        const rates = results.get(name) ?? { bare: [], cached: { hit: [], 304: [] } };
        results.set(name, rates);
        await runRound(framework, size, seconds, rates);
        console.error(
          `round ${round}: ${name}: hit ${ratios(rates.cached.hit.slice(-1), rates.bare.slice(-1))}`,
        );
      }
    }
  }
  const page = report(results, rounds, seconds);
  console.log(page);
  if (!isKept) return;
  writeFileSync(here("results.md"), page);
  console.error("kept in bench/http/results.md");
}

try {
  await main();
} catch (error) {
  console.error(`bench:http: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
