// `npm run soak [-- --minutes 10 --seed 7 --store cluster --near off]`: the consistency test for the given time.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildIfStale } from "../build/build.mjs";
import { loadSource } from "../test/load-source.mjs";

/**
 * @typedef {import("../../test/consistency/round.ts")} Round
 * @typedef {import("../../test/support/servers.global.ts")} Servers
 * @typedef {import("../../test/consistency/plan.ts").Setting} Setting
 */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** A longer run consists of several, each with its own seed and servers. */
const LONGEST_ROUND_S = 150;
const STORES = /** @type {const} */ (["one", "sentinel", "cluster"]);

/** @param {string} message */
function refuse(message) {
  console.error(
    `${message}\nusage: npm run soak -- [--minutes 10] [--seed 1] [--store one|sentinel|cluster] [--near on|off]`,
  );
  process.exit(2);
}

function readArguments() {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 1e6)) },
      store: { type: "string" },
      near: { type: "string" },
    },
  });
  const seconds = Number(values.minutes) * 60;
  const seed = Number(values.seed);
  const store = STORES.find((name) => name === values.store);
  if (!(seconds >= 10))
    refuse(`--minutes must be a number of at least ${(10 / 60).toFixed(2)}, got ${values.minutes}`);
  if (!Number.isSafeInteger(seed)) refuse(`--seed must be a whole number, got ${values.seed}`);
  if (values.store !== undefined && store === undefined)
    refuse(`--store must be one, sentinel or cluster, got ${values.store}`);
  if (values.near !== undefined && values.near !== "on" && values.near !== "off")
    refuse(`--near must be on or off, got ${values.near}`);
  return { seconds, seed, store, near: values.near };
}

/**
 * Unspecified settings alternate between rounds.
 * @param {ReturnType<typeof readArguments>} given
 * @returns {Setting[]}
 */
function settings({ seconds, seed, store, near }) {
  const rounds = Math.ceil(seconds / LONGEST_ROUND_S);
  return Array.from({ length: rounds }, (_, round) => ({
    seed: seed + round,
    seconds: seconds / rounds,
    store: store ?? /** @type {Setting["store"]} */ (STORES[round % STORES.length]),
    near: near === undefined ? Math.floor(round / STORES.length) % 2 === 0 : near === "on",
  }));
}

/**
 * @param {import("../../test/consistency/round.ts").Outcome} outcome
 * @param {string} report
 */
function keep({ setting, history, violations }, report) {
  const folder = join(ROOT, ".cache");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `soak-${setting.store}-${setting.seed}.json`);
  writeFileSync(file, JSON.stringify({ setting, violations, report, history }, undefined, 1));
  return file;
}

const given = readArguments();
const built = buildIfStale();
if (built !== 0) process.exit(built);

const { setup, teardown } = /** @type {Servers} */ (await loadSource("test/support/servers.global.ts"));
const { runRound, report } = /** @type {Round} */ (await loadSource("test/consistency/round.ts"));
setup();
let failures = 0;
try {
  for (const setting of settings(given)) {
    const { seed, store, near, seconds } = setting;
    console.log(`seed ${seed}: ${seconds.toFixed(0)} s on ${store}, near tier ${near ? "on" : "off"}`);
    const outcome = await runRound(setting);
    const facts = Object.entries(outcome.counts).map(([name, value]) => `${name} ${Math.round(value)}`);
    console.log(`  ${facts.join(", ")}`);
    if (outcome.violations.length === 0) continue;
    failures++;
    const words = report(outcome);
    console.log(`${words}\nThe whole history: ${keep(outcome, words)}`);
  }
} finally {
  teardown();
}
console.log(failures === 0 ? "every guarantee held" : `${failures} rounds with violations`);
process.exitCode = failures === 0 ? 0 : 1;
