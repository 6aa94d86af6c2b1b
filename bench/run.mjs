// Runs the scenarios: node run.mjs [--only <scenario or report>]... [--rounds <n>]. A complete report is kept in results/.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { REDIS_SERVER } from "./kv/server.mjs";
import { MEMCACHED } from "./memcached/server.mjs";
import { heading, scenarioSection } from "./report.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** In the order of the reports; a scenario file that is not listed here comes last. */
const ORDER = [
  "full-get-or-set",
  "full-million",
  "full-mixed",
  "full-miss",
  "full-peek",
  "full-near-hit",
  "get-shared",
  "get-or-set-shared",
  "cached-hit",
  "cached-hit-even",
  "get-copy",
  "set-shared",
  "heap",
  "stampede",
  "get-or-set-miss",
  "get-tagged",
  "get-observed",
  "kv-get",
  "kv-get-64",
  "kv-get-256",
  "kv-set-64",
  "kv-get-many",
  "kv-get-many-texts",
  "kv-get-many-objects",
  "kv-near-hit",
  "kv-near-miss",
  "kv-stampede",
  "kv-invalidate-tag",
  "kv-commands",
  "kv-tag-bytes",
  "memcached-get-64",
  "memcached-set-64",
  "disk-get-64",
  "disk-set-64",
];
const DEFAULT_ROUNDS = 5;

const found = readdirSync(here("scenarios")).map((file) => file.replace(/\.mjs$/, ""));
const scenarioNames = [
  ...ORDER.filter((name) => found.includes(name)),
  ...found.filter((name) => !ORDER.includes(name)),
];
/** Scenarios of these reports begin with their name; all others belong to the memory store. */
const STORES = ["full", "kv", "memcached", "disk"];
const storeOf = (name) => STORES.find((store) => name.startsWith(`${store}-`)) ?? "memory";
/** The scenarios of each report, which is a file in results/. */
const REPORTS = Object.fromEntries(
  ["memory", ...STORES].map((store) => [store, scenarioNames.filter((name) => storeOf(name) === store)]),
);
const options = readOptions();

function readOptions() {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true, default: [] },
      rounds: { type: "string", default: String(DEFAULT_ROUNDS) },
    },
  });
  const rounds = Number(values.rounds);
  const named = values.only.flatMap((name) => REPORTS[name] ?? [name]);
  const unknown = named.find((name) => !scenarioNames.includes(name));
  const known = [...Object.keys(REPORTS), ...scenarioNames].join(", ");
  if (unknown !== undefined) fail(`there is no scenario or report ${unknown}; there are ${known}`);
  if (!Number.isInteger(rounds) || rounds < 1)
    fail(`--rounds must be a whole number of at least 1, got ${values.rounds}`);
  return { chosen: named.length > 0 ? named : scenarioNames, rounds };
}

function fail(message) {
  console.error(message);
  process.exit(2);
}

function showProgress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/** One measurement in a separate process. A failure is reported, and the others go on. */
function measure(scenarioName, library, seed, flags = []) {
  const args = [...flags, here("worker.mjs"), scenarioName, library, String(seed)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", cwd: here(".") });
  if (status !== 0) {
    console.error(`${scenarioName} with ${library} failed:\n${stderr}`);
    process.exitCode = 1;
    return { failed: true };
  }
  return JSON.parse(stdout.trim().split("\n").at(-1));
}

/** Throughput relative to the baseline's, by wall clock and by CPU time. */
function ratios(before, run) {
  if (before === undefined || before.failed || run.failed) return {};
  return {
    ratio: before.figure / run.figure,
    cpuRatio: run.cpu === undefined ? undefined : before.cpu / run.cpu,
  };
}

/** Starts each round with another library, so that none always follows the same one. */
const rotated = (list, by) => list.map((_, at) => list[(at + by) % list.length]);

function runScenario(name, { baseline, libraries, nodeFlags, rounds: most = options.rounds }) {
  const names = baseline === undefined ? libraries : [baseline, ...libraries];
  const runs = new Map(names.map((library) => [library, []]));
  for (let round = 0; round < Math.min(options.rounds, most); round++) {
    for (const library of rotated(libraries, round)) {
      showProgress(`${name}, round ${round + 1}: ${library}`);
      const before = baseline === undefined ? undefined : measure(name, baseline, round + 1, nodeFlags);
      const run = measure(name, library, round + 1, nodeFlags);
      if (before !== undefined) runs.get(baseline).push(before);
      runs.get(library).push({ ...run, ...ratios(before, run) });
    }
  }
  showProgress("");
  return runs;
}

function installedVersions() {
  const { packages } = JSON.parse(readFileSync(here("package-lock.json"), "utf8"));
  const own = JSON.parse(readFileSync(here("../package.json"), "utf8")).version;
  const peers = Object.keys(packages[""].devDependencies).map((name) => [
    name,
    packages[`node_modules/${name}`].version,
  ]);
  return Object.fromEntries([["xcache", own], ...peers]);
}

/** The disk is compared with Redis. */
const SERVERS = { full: REDIS_SERVER, kv: REDIS_SERVER, disk: REDIS_SERVER, memcached: MEMCACHED };

/** Such as `Redis server v=7.0.15`; undefined if there is none, or it cannot be run. */
function serverVersion(report) {
  if (SERVERS[report] === undefined) return undefined;
  const { stdout } = spawnSync(SERVERS[report], ["--version"], { encoding: "utf8" });
  return stdout?.trim().split(" ").slice(0, 3).join(" ");
}

const versions = installedVersions();
const command = `npm run bench${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}`;

async function runReport(report, names) {
  const facts = { command, rounds: options.rounds, startedAt: new Date(), load: os.loadavg()[0] };
  const sections = [heading(report, { ...facts, server: serverVersion(report) })];
  console.log(sections[0]);
  for (const name of names) {
    const { scenario } = await import(`./scenarios/${name}.mjs`);
    const section = scenarioSection(scenario, runScenario(name, scenario), versions);
    console.log(section);
    sections.push(section);
  }
  if (names.length < REPORTS[report].length) return;
  mkdirSync(here("results"), { recursive: true });
  writeFileSync(here(`results/${report}.md`), `${sections.join("\n").trimEnd()}\n`);
  console.error(`Written to bench/results/${report}.md`);
}

for (const [report, all] of Object.entries(REPORTS)) {
  const names = all.filter((name) => options.chosen.includes(name));
  if (names.length > 0) await runReport(report, names);
}
