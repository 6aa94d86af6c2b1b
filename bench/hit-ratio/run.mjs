// Hit ratios of eviction policies on fixed traces: node bench/hit-ratio/run.mjs [--traces <folder>], after a build. Kept in
// results/hit-ratio.md. The folder has recorded traces, see recorded.mjs; without one their table is omitted.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { arc } from "./policies/arc.mjs";
import { belady } from "./policies/belady.mjs";
import { clockPro } from "./policies/clock-pro.mjs";
import { lirs } from "./policies/lirs.mjs";
import { lru } from "./policies/lru.mjs";
import { s3Fifo } from "./policies/s3-fifo.mjs";
import { sieve } from "./policies/sieve.mjs";
import { gdsf, lruBySize, wTinyLfuBySize } from "./policies/sized.mjs";
import { twoQueue } from "./policies/two-queue.mjs";
import { wTinyLfu } from "./policies/w-tiny-lfu.mjs";
import { xcache, xcacheBySize } from "./policies/xcache.mjs";
import { nameOf, RECORDED, recordedTrace } from "./recorded.mjs";
import { TRACES, UNIVERSE, zipfWithSizes } from "./traces.mjs";

const { values: options } = parseArgs({ options: { traces: { type: "string" } } });

const CAPACITY = 1_000;
const REQUESTS = 1_000_000;
/** By how many points ours may trail where it must keep up. */
const ALLOWANCE = 0.7;
const OPTIMUM_TOLERANCE = 0.3;
/** By how many points ours may trail the best of the others on a recorded trace. */
const RECORDED_ALLOWANCE = 1.5;

const PEERS = {
  LRU: lru,
  SIEVE: sieve,
  "S3-FIFO": s3Fifo,
  "W-TinyLFU": wTinyLfu,
  ARC: arc,
  LIRS: lirs,
  ClockPro: clockPro,
  "2Q": twoQueue,
};
const POLICIES = { ...PEERS, xcache, optimum: belady };
const SIZED = { LRU: lruBySize, GDSF: gdsf, "W-TinyLFU": wTinyLfuBySize, xcache: xcacheBySize };

/** The requirements of a reference trace that the figures miss. */
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

const row = (cells) => `| ${cells.join(" | ")} |`;
const heading = (titles) => [row(titles), `|---${"|---:".repeat(titles.length - 1)}|`];
const shown = (figures) => Object.values(figures).map((figure) => figure.toFixed(1));

function figuresOf(trace, capacity) {
  const figures = {};
  for (const [name, policy] of Object.entries(POLICIES))
    figures[name] = (100 * policy(trace, capacity)) / trace.length;
  return figures;
}

const missed = [];

function syntheticTable() {
  const lines = heading(["trace", ...Object.keys(POLICIES), "goal"]);
  for (const trace of TRACES) {
    const figures = figuresOf(trace.make(REQUESTS), CAPACITY);
    missed.push(...shortfalls(trace, figures));
    lines.push(row([trace.name, ...shown(figures), trace.goal ?? ""]));
  }
  return lines;
}

function recordedTable(folder) {
  const lines = heading(["trace, capacity", ...Object.keys(POLICIES), "to the best other"]);
  const sums = {};
  let rows = 0;
  for (const recorded of RECORDED) {
    const trace = recordedTrace(folder, recorded);
    for (const capacity of recorded.capacities) {
      const figures = figuresOf(trace, capacity);
      const behind = figures.xcache - Math.max(...Object.keys(PEERS).map((name) => figures[name]));
      const title = `${nameOf(recorded.file)} ${capacity}`;
      if (behind < -RECORDED_ALLOWANCE) missed.push(`${title}: xcache is ${-behind} points behind`);
      lines.push(row([title, ...shown(figures), behind.toFixed(1)]));
      for (const [name, figure] of Object.entries(figures)) sums[name] = (sums[name] ?? 0) + figure;
      rows++;
    }
  }
  const means = Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sum / rows]));
  lines.push(row(["mean", ...Object.values(means).map((mean) => mean.toFixed(2)), ""]));
  return lines;
}

function sizedTable() {
  const { trace, sizes } = zipfWithSizes(REQUESTS);
  let total = 0;
  for (const key of trace) total += sizes[key];
  let stored = 0;
  for (const size of sizes) stored += size;
  const lines = heading([
    "bytes bounded to",
    ...Object.keys(SIZED).flatMap((name) => [name, `${name}, bytes`]),
  ]);
  for (const share of [0.01, 0.05]) {
    const cells = Object.values(SIZED).flatMap((policy) => {
      const { hits, bytes } = policy(trace, sizes, Math.round(stored * share));
      return [((100 * hits) / trace.length).toFixed(1), ((100 * bytes) / total).toFixed(1)];
    });
    lines.push(row([`${100 * share} % of all keys' bytes`, ...cells]));
  }
  return lines;
}

const recorded =
  options.traces === undefined
    ? []
    : [
        "## Recorded traces",
        "",
        "From the resources of the Caffeine simulator (github.com/ben-manes/caffeine, simulator/src/main/resources), which name their",
        "origins; they are not part of this project. The run is `node bench/hit-ratio/run.mjs --traces <folder>`.",
        "",
        ...recordedTable(options.traces),
        "",
      ];
const report = `# Hit ratios

\`xcache\` is the store itself, the others are simulations in \`bench/hit-ratio/policies/\`, \`optimum\` knows the future (Belady).
W-TinyLFU sizes its window and counts as Caffeine does.

${recorded.map((line) => `${line}\n`).join("")}## Made traces

Per cent of ${REQUESTS.toLocaleString("en")} requests over ${UNIVERSE.toLocaleString("en")} keys, ${CAPACITY.toLocaleString("en")} entries.
The traces are made by \`bench/hit-ratio/traces.mjs\` with fixed seeds; the run is \`node bench/hit-ratio/run.mjs\`.

${syntheticTable().join("\n")}

## Entries of different sizes

Zipf(1.0) over ${UNIVERSE.toLocaleString("en")} keys whose sizes follow a Pareto distribution (100 bytes to 1 MB, independent of how often they are asked for),
bounded by bytes. Per cent of the requests, and of the bytes asked for.

${sizedTable().join("\n")}
`;
process.stdout.write(report);
mkdirSync(fileURLToPath(new URL("../results", import.meta.url)), { recursive: true });
writeFileSync(new URL("../results/hit-ratio.md", import.meta.url), report);
for (const shortfall of missed) process.stderr.write(`missed: ${shortfall}\n`);
process.exitCode = missed.length > 0 ? 1 : 0;
