// Runs parts of the schedules in a thread of its own, on a bundle that was made before.
import { parentPort, workerData } from "node:worker_threads";

const { simulate, explain } = await import(workerData.url);

parentPort?.on("message", async ({ options, stops }) => {
  const { schedules, failures, first } = await simulate(options, stops);
  // Shrinking takes a while; a run that was to find just anything needs none.
  const explanation =
    first === undefined ? "" : stops ? String(first.violations[0].message) : await explain(first);
  parentPort?.postMessage({ schedules, failures: Object.keys(failures), explanation });
});
