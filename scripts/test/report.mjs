// Reads the report of a test run and summarizes it in one plain line: `12 passed, 0 failed`.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 * @typedef {{ status: string, assertionResults: { status: string }[] }} FileResult
 */

/**
 * Counts tests. A file that failed without a failing test (it could not be loaded) counts as one failure.
 * @param {string} path
 * @returns {Counts}
 */
export function readReport(path) {
  const report = JSON.parse(readFileSync(path, "utf8"));
  /** @type {FileResult[]} */
  const files = report.testResults;
  const broken = files.filter(
    ({ status, assertionResults }) =>
      status === "failed" && !assertionResults.some((test) => test.status === "failed"),
  );
  const failed = report.numFailedTests + broken.length;
  return {
    passed: report.numPassedTests,
    // The run as a whole can fail on something outside any test, such as an unhandled rejection.
    failed: failed === 0 && !report.success ? 1 : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { passed, failed } = readReport(process.argv[2] ?? ".cache/test-report.json");
  console.log(`${passed} passed, ${failed} failed`);
}
