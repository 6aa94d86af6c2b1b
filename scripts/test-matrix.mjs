// `npm run test:matrix [-- 24 test/codec]`: runs the tests under every supported Node release and prints a table.
// Releases other than the installed one come from npm packages that hold the program; they are kept in .cache/.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "./build.mjs";
import { readReport } from "./test-report.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CACHE = join(ROOT, ".cache");
const RELEASES = ["20", "22", "24", "26"];

/**
 * The node program of a release: the running one where it fits, else from npm, installed when it is not there yet.
 * @param {string} release
 */
function obtain(release) {
  if (process.versions.node.startsWith(`${release}.`)) return process.execPath;
  const platform = process.platform === "win32" ? "win" : process.platform;
  const name = `node-${platform}-${process.arch}`;
  const folder = join(CACHE, `node-${release}`);
  const program = join(
    folder,
    "node_modules",
    name,
    "bin",
    process.platform === "win32" ? "node.exe" : "node",
  );
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    const args = [
      "install",
      "--no-save",
      "--no-audit",
      "--no-fund",
      "--no-package-lock",
      `${name}@${release}`,
    ];
    const { status } = spawnSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    if (status !== 0) throw new Error(`npm could not install ${name}@${release}.`);
  }
  return program;
}

/**
 * Runs the tests with one program, for their child processes too.
 * @param {string} program
 * @param {readonly string[]} args
 */
function runTests(program, args) {
  const version = spawnSync(program, ["--version"], { encoding: "utf8" }).stdout.trim();
  const report = join(CACHE, `test-report-${version}.json`);
  rmSync(report, { force: true });
  console.log(`\nNode ${version}`);
  const began = performance.now();
  const { status } = spawnSync(program, [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", ...args], {
    cwd: ROOT,
    stdio: "inherit",
    env: {
      ...process.env,
      PATH: `${dirname(program)}:${process.env.PATH}`,
      CI: "true",
      XCACHE_TEST_REPORT: report,
    },
  });
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const counts = existsSync(report) ? readReport(report) : { passed: 0, failed: 1, skipped: 0 };
  return { version, ...counts, seconds, verdict: status === 0 && counts.failed === 0 ? "ok" : "FAILED" };
}

/** @param {readonly (readonly string[])[]} rows */
function printTable(rows) {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}

const named = process.argv.slice(2).filter((arg) => /^\d+$/.test(arg));
const vitestArgs = process.argv.slice(2).filter((arg) => !/^\d+$/.test(arg));
const builtWith = buildIfStale();
if (builtWith !== 0) process.exit(builtWith);

const programs = (named.length > 0 ? named : RELEASES).map(obtain);
const results = programs.map((program) => runTests(program, vitestArgs));
console.log();
printTable([
  ["node", "passed", "failed", "skipped", "seconds", ""],
  ...results.map((r) => [
    r.version,
    String(r.passed),
    String(r.failed),
    String(r.skipped),
    r.seconds,
    r.verdict,
  ]),
]);
process.exitCode = results.every((result) => result.verdict === "ok") ? 0 : 1;
