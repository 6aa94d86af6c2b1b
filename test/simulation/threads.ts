// Runs schedules in threads: the bundle is loaded as it is, and the event loops of the tests stay apart from it.
import { Worker } from "node:worker_threads";
import type { SimulationOptions } from "./index.ts";

export interface Outcome {
  readonly schedules: number;
  /** The checks that failed. */
  readonly failures: readonly string[];
  /** The first failing schedule, shrunk. */
  readonly explanation: string;
}

/** `stops`: at the first violation. */
export function simulateInThread(url: string, options: SimulationOptions, stops = false): Promise<Outcome> {
  const worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    workerData: { url, options, stops },
    // Nearly everything is garbage soon after.
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
  });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the simulation ended with code ${code}`)));
  });
}
