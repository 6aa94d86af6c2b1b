// Hit ratios of eviction policies on fixed traces: node bench/hit-ratio/run.mjs, after a build. Kept in results/hit-ratio.md.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { belady } from "./policies/belady.mjs";
import { lru } from "./policies/lru.mjs";
import { s3Fifo } from "./policies/s3-fifo.mjs";
import { sieve } from "./policies/sieve.mjs";

import { wTinyLfu } from "./policies/w-tiny-lfu.mjs";
import { xcache } from "./policies/xcache.mjs";
import { TRACES } from "./traces.mjs";

const CAPACITY = 1_000;
const REQUESTS = 1_000_000;
/** How many points ours may be behind where it must keep up. */
const ALLOWANCE = 0.7;
const OPTIMUM_TOLERANCE = 0.3;

const POLICIES = {
  LRU: lru,
  SIEVE: sieve,
  "S3-FIFO": s3Fifo,
  "W-TinyLFU": wTinyLfu,
  xcache,
  optimum: belady,
};

/** What a reference trace demands of the figures and does not get. */
function shortfalls({ name, optimum, goal }, figures) {
  if (goal === undefined) return [];
  const found = [];
  const ours = figures.xcache;
  if (Math.abs(figures.optimum - optimum) > OPTIMUM_TOLERANCE)
    found.push(`${name}: the optimum is not ${optimum}`);
  if (ours < goal) found.push(`${name}: xcache is below ${goal}`);
  const peers = name === "loop" ? ["LRU", "SIEVE", "S3-FIFO", "W-TinyLFU"] : ["LRU", "SIEVE", "S3-FIFO"];
  for (const peer of peers)
    if (ours < figures[peer] - ALLOWANCE) found.push(`${name}: xcache is below ${peer}`);
  return found;
}

function row(title, cells) {
  return `| ${[title, ...cells].join(" | ")} |`;
}

const lines = [row("trace", [...Object.keys(POLICIES), "goal"]), `|---${"|---:".repeat(7)}|`];
const missed = [];
for (const trace of TRACES) {
  const keys = trace.make(REQUESTS);
  const figures = {};
  for (const [name, policy] of Object.entries(POLICIES))
    figures[name] = (100 * policy(keys, CAPACITY)) / REQUESTS;
  missed.push(...shortfalls(trace, figures));
  lines.push(
    row(trace.name, [...Object.values(figures).map((figure) => figure.toFixed(1)), trace.goal ?? ""]),
  );
}

const report = `# Hit ratios

Per cent of ${REQUESTS.toLocaleString("en")} requests over 100,000 keys, ${CAPACITY.toLocaleString("en")} entries.
\`xcache\` is the store itself, the others are simulations, \`optimum\` knows the future (Belady).
The traces are made by \`bench/hit-ratio/traces.mjs\` with fixed seeds; the run is \`node bench/hit-ratio/run.mjs\`.

${lines.join("\n")}
`;
process.stdout.write(report);
mkdirSync(fileURLToPath(new URL("../results", import.meta.url)), { recursive: true });
writeFileSync(new URL("../results/hit-ratio.md", import.meta.url), report);
for (const shortfall of missed) process.stderr.write(`missed: ${shortfall}\n`);
process.exitCode = missed.length > 0 ? 1 : 0;
