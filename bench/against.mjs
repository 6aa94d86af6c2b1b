// `node bench/against.mjs <checkout> [--only <scenario>]... [--rounds <n>]`: compares this checkout with another one of xcache, both
// built, alternating. Each measurement runs in a separate process, in the checkout it measures.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const DEFAULT_SCENARIOS = [
  "kv-get",
  "kv-get-64",
  "kv-get-256",
  "kv-set-64",
  "kv-get-many",
  "kv-near-hit",
  "kv-near-miss",
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string", multiple: true, default: DEFAULT_SCENARIOS },
    rounds: { type: "string", default: "5" },
  },
});
const rounds = Number(values.rounds);
const [other] = positionals;
if (other === undefined || !existsSync(join(other, "dist/index.js")) || !(rounds >= 1)) {
  console.error("usage: node bench/against.mjs <checkout with dist> [--only <scenario>]... [--rounds <n>]");
  process.exit(2);
}

/** @typedef {{ figure: number, cpu?: number }} Figures */

const CHECKOUTS = { before: resolve(other), now: fileURLToPath(new URL("..", import.meta.url)) };

/**
 * @param {string} checkout
 * @param {string} scenario
 * @param {string} library
 * @param {number} seed
 * @returns {Figures}
 */
function measure(checkout, scenario, library, seed) {
  const args = [join(checkout, "bench/worker.mjs"), scenario, library, String(seed)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    cwd: join(checkout, "bench"),
  });
  if (status !== 0) throw new Error(`${scenario} failed in ${checkout}:\n${stderr}`);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

/** @param {readonly number[]} figures */
function spread(figures) {
  const sorted = figures.toSorted((one, next) => one - next);
  const [least, median, most] = [0, Math.floor(sorted.length / 2), sorted.length - 1].map(
    (at) => sorted[at] ?? 0,
  );
  return `${median?.toFixed(2)} (${least?.toFixed(2)} to ${most?.toFixed(2)})`;
}

console.log(
  "| scenario | before | now | throughput, now by before | by CPU time |\n| --- | ---: | ---: | ---: | ---: |",
);
for (const name of values.only) {
  const { scenario } = await import(`./scenarios/${name}.mjs`);
  const library = scenario.libraries.find((/** @type {string} */ each) => /(^|\/)xcache$/.test(each));
  /** @type {[before: Figures, now: Figures][]} */
  const pairs = [];
  for (let round = 1; round <= rounds; round++) {
    const isTurned = round % 2 === 0;
    const first = measure(isTurned ? CHECKOUTS.now : CHECKOUTS.before, name, library, round);
    const second = measure(isTurned ? CHECKOUTS.before : CHECKOUTS.now, name, library, round);
    pairs.push(isTurned ? [second, first] : [first, second]);
  }
  const figures = pairs.map(([before, now]) => before.figure / now.figure);
  const cpu = pairs.flatMap(([before, now]) =>
    before.cpu === undefined || now.cpu === undefined ? [] : [before.cpu / now.cpu],
  );
  const columns = [
    spread(pairs.map(([before]) => before.figure)),
    spread(pairs.map(([, now]) => now.figure)),
    spread(figures),
    cpu.length === 0 ? "" : spread(cpu),
  ];
  console.log(`| ${[name, ...columns].join(" | ")} |`);
}
