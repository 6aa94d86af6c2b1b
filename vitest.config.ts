import { readdirSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** A test that puts something of its own in the place of modules or timers must not meet what others have left in them. */
const REPLACES_PARTS = /\bvi\.(mock|doMock|resetModules|useFakeTimers)\(/;

const tests = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".test.ts"))
  .map((path) => `test/${path}`);
const alone = tests.filter((path) => REPLACES_PARTS.test(readFileSync(path, "utf8")));

export default defineConfig({
  test: {
    globalSetup: ["test/support/servers.global.ts", "test/support/modules.global.ts"],
    pool: "forks",
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Nearly every file imports most of src: to do that once for all files of a worker saves a third of the time.
    projects: [
      {
        extends: true,
        test: { name: "together", include: ["test/**/*.test.ts"], exclude: alone, isolate: false },
      },
      { extends: true, test: { name: "alone", include: alone } },
    ],
    // The report is where .ci/run and the Node matrix read their closing figures.
    reporters: process.env.CI ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.XCACHE_TEST_REPORT ?? ".cache/test-report.json" },
  },
});
