import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/servers.global.ts"],
    pool: "forks",
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // The report is where .ci/run and the Node matrix read their closing figures.
    reporters: process.env.CI ? ["default", "json"] : ["default"],
    outputFile: { json: process.env.XCACHE_TEST_REPORT ?? ".cache/test-report.json" },
  },
});
