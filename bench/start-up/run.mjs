// What it costs to start with xcache: processes that import it, or say its version, against processes that do nothing.
// node bench/start-up/run.mjs [runs = 21]   (needs a build)
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { median } from "../timing.mjs";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const RESULTS = fileURLToPath(new URL("../results/start-up.md", import.meta.url));
const RUNS = Number(process.argv[2] ?? 21);

const folder = mkdtempSync(join(tmpdir(), "xcache-start-up-"));
const program = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const imports = (path) => `import ${JSON.stringify(pathToFileURL(join(DIST, path)).href)};\n`;

/** By name: what is run, what it is compared with, how many milliseconds more it may take. */
const CASES = {
  "an empty module": { args: [program("empty.mjs", "")] },
  'import "xcache"': {
    args: [program("library.mjs", imports("index.js"))],
    against: "an empty module",
    target: 40,
  },
  "node -e 0": { args: ["-e", "0"] },
  "xcache --version": { args: [join(DIST, "cli/main.js"), "--version"], against: "node -e 0", target: 80 },
};

const taken = new Map(Object.keys(CASES).map((name) => [name, []]));
for (let run = 0; run < RUNS; run++) {
  for (const [name, { args }] of Object.entries(CASES)) {
    const began = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`${name} ended with ${status}: ${stderr}`);
    taken.get(name).push(performance.now() - began);
  }
}
rmSync(folder, { recursive: true });

const rows = Object.entries(CASES).map(([name, { against, target }]) => {
  const ms = median(taken.get(name));
  const more = against === undefined ? undefined : ms - median(taken.get(against));
  const reached = more === undefined ? "" : more < target ? "yes" : "no";
  return `| ${name} | ${ms.toFixed(1)} | ${more?.toFixed(1) ?? ""} | ${target === undefined ? "" : `< ${target}`} | ${reached} |`;
});
const report = `# Starting with xcache

- node: ${process.version} on ${process.platform} ${process.arch}
- command: \`node bench/start-up/run.mjs ${RUNS}\`: whole processes in turns, medians of ${RUNS}

| process | ms | more than its pair | target | reached |
| --- | ---: | ---: | ---: | ---: |
${rows.join("\n")}
`;
console.log(report);
if (process.version.startsWith("v20.")) writeFileSync(RESULTS, report);
