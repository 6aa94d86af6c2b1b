// Runs schedules in threads: the bundle is loaded as it is, and the event loops of the tests stay apart from it.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { SimulationOptions } from "./index.ts";

export interface Outcome {
  readonly schedules: number;
  /** The checks that failed. */
  readonly failures: readonly string[];
  /** The first failing schedule, shrunk. */
  readonly explanation: string;
}

/**
 * One thread for any number of simulations, one after another: the first thousand schedules of a thread take three times as
 * long as later ones, until the code is compiled.
 */
export class SimulationThread {
  readonly #worker: Worker;

  /** `url`: of a bundle. */
  constructor(url: string) {
    this.#worker = new Worker(new URL("./worker.mjs", import.meta.url), {
      workerData: { url },
      // Nearly everything is garbage soon after.
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    });
  }

  /** `stops`: at the first violation. */
  async simulate(options: SimulationOptions, stops = false): Promise<Outcome> {
    const outcome = Promise.race([
      once(this.#worker, "message"),
      once(this.#worker, "exit").then(([code]) => {
        throw new Error(`the simulation ended with code ${code}`);
      }),
    ]);
    this.#worker.postMessage({ options, stops });
    return (await outcome)[0] as Outcome;
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}
