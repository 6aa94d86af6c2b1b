// `npm run test:servers [-- test/behaviour/kv]`: runs the contract suite and the fault tests on every available Redis and Valkey.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildIfStale } from "../build/build.mjs";
import { debianServer } from "./debian-server.mjs";
import { readReport } from "./report.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TESTS = ["contract", "faults", "lost-connection", "restricted"].map(
  (name) => `test/behaviour/kv/${name}.test.ts`,
);
/** Debian's suites and their versions of Redis and Valkey. */
const SERVERS = /** @type {const} */ ([
  ["bullseye", "redis-server"],
  ["bookworm", "redis-server"],
  ["trixie", "redis-server"],
  ["trixie", "valkey-server"],
  ["sid", "valkey-server"],
]);

/**
 * @param {string} program
 * @param {readonly string[]} tests
 */
function testOn(program, tests) {
  const words = spawnSync(program, ["--version"], { encoding: "utf8" }).stdout;
  const [, kind = "?", version = "?"] = /^(\w+) server v=(\S+)/.exec(words) ?? [];
  const report = join(ROOT, ".cache", `test-report-${kind}-${version}.json`);
  rmSync(report, { force: true });
  console.log(`\n${kind} ${version}`);
  const { status } = spawnSync(
    process.execPath,
    [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", ...tests],
    {
      cwd: ROOT,
      stdio: "inherit",
      env: {
        ...process.env,
        CI: "true",
        XCACHE_TEST_REDIS_SERVER: program,
        XCACHE_TEST_REPORT: report,
      },
    },
  );
  const counts = existsSync(report) ? readReport(report) : { passed: 0, failed: 1, skipped: 0 };
  const isFine = status === 0 && counts.failed === 0;
  return { server: `${kind} ${version}`, ...counts, verdict: isFine ? "ok" : "FAILED" };
}

const named = process.argv.slice(2);
const builtWith = buildIfStale();
if (builtWith !== 0) process.exit(builtWith);

const results = [];
for (const [suite, name] of SERVERS)
  results.push(testOn(await debianServer(suite, name), named.length > 0 ? named : TESTS));
console.table(results);
process.exitCode = results.every(({ verdict }) => verdict === "ok") ? 0 : 1;
