// The cost of starting with xcache: processes that import it, read for the first time, or print its version, compared with
// processes that do nothing. node bench/start-up/run.mjs [runs = 21]   (needs a build)
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startServer } from "../kv/server.mjs";
import { median } from "../timing.mjs";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const RESULTS = fileURLToPath(new URL("../results/start-up.md", import.meta.url));
const RUNS = Number(process.argv[2] ?? 21);

const server = await startServer();
const folder = mkdtempSync(join(tmpdir(), "xcache-start-up-"));
/** Prints the CPU time that its process has used by the end. */
const program = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, `${text}\nconst { user, system } = process.cpuUsage();\nconsole.log(user + system);\n`);
  return { args: [path], isMeasured: true };
};
const address = (path) => JSON.stringify(pathToFileURL(join(DIST, path)).href);
const firstGet = (url) => `
import { XCache } from ${address("index.js")};
const cache = new XCache({ kvUrl: ${JSON.stringify(url)}, keyPrefix: "start-up" });
await cache.get("key");
`;

/** By name: what is run, what it is compared with, and how many extra milliseconds of CPU time it may take. */
const CASES = {
  "an empty module": program("empty.mjs", ""),
  'import "xcache"': {
    ...program("library.mjs", `import ${address("index.js")};`),
    against: "an empty module",
    target: 20,
  },
  "first get in memory": {
    ...program("memory.mjs", firstGet("memory://")),
    against: "an empty module",
    target: 40,
  },
  "first get on Redis": {
    ...program("redis.mjs", firstGet(server.url)),
    against: "an empty module",
    target: 75,
  },
  "node -e 0": { args: ["-e", "0"] },
  "xcache --version": { args: [join(DIST, "cli/main.js"), "--version"], against: "node -e 0" },
};

const taken = new Map(Object.keys(CASES).map((name) => [name, { ms: [], cpu: [] }]));
for (let run = 0; run < RUNS; run++) {
  for (const [name, { args, isMeasured }] of Object.entries(CASES)) {
    const began = performance.now();
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      encoding: "utf8",
      timeout: 60_000,
    });
    if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
    taken.get(name).ms.push(performance.now() - began);
    if (isMeasured) taken.get(name).cpu.push(Number(stdout) / 1_000);
  }
}
rmSync(folder, { recursive: true });

const rows = Object.entries(CASES).map(([name, { against, target, isMeasured }]) => {
  const cells = ["ms", "cpu"].flatMap((what) => {
    if (what === "cpu" && isMeasured !== true) return ["", ""];
    const own = median(taken.get(name)[what]);
    const more = against === undefined ? "" : (own - median(taken.get(against)[what])).toFixed(1);
    return [own.toFixed(1), more];
  });
  const goal = target === undefined ? ["", ""] : [`<= ${target}`, Number(cells[3]) <= target ? "yes" : "no"];
  return `| ${[name, ...cells, ...goal].join(" | ")} |`;
});
const report = `# Starting with xcache

- node: ${process.version} on ${process.platform} ${process.arch}
- command: \`node bench/start-up/run.mjs ${RUNS}\`: whole processes in turns, medians of ${RUNS}

| process | ms | more than its pair | ms of CPU | more than its pair | target | reached |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
${rows.join("\n")}
`;
console.log(report);
if (process.version.startsWith("v20.")) writeFileSync(RESULTS, report);
process.exit(0);
