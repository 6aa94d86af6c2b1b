// `npm run test:matrix [-- 24 test/codec]`: runs the tests under every supported Node release and prints a table.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "../build/build.mjs";
import { nodeOfRelease } from "./node-release.mjs";
import { readReport } from "./report.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CACHE = join(ROOT, ".cache");
const RELEASES = ["20", "22", "24", "26"];

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

const programs = (named.length > 0 ? named : RELEASES).map(nodeOfRelease);
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
