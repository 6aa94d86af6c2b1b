// Runs the simulation in threads: the bundle is loaded as it is, and the event loops of the tests stay apart from it.
import { Worker } from "node:worker_threads";

type Bundle = typeof import("./index.ts");
type Result<Name extends keyof Bundle> = Bundle[Name] extends (...args: never) => infer Returned
  ? Awaited<Returned>
  : never;
type Arguments<Name extends keyof Bundle> = Bundle[Name] extends (...args: infer Args) => unknown
  ? Args
  : never;

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: unknown;
}

/**
 * One thread for any number of calls, one after another: the first thousand schedules of a thread take three times as
 * long as later ones, until the code is compiled.
 */
export class SimulationThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: unknown): void }>();
  #ids = 0;

  /** `url`: of a bundle. */
  constructor(url: string) {
    this.#worker = new Worker(new URL("./worker.mjs", import.meta.url), {
      workerData: { url },
      // Nearly everything is garbage soon after.
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    });
    this.#worker.on("message", ({ id, result, error }: Answer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(error);
    });
    this.#worker.on("error", (error) => this.#fail(error));
    this.#worker.on("exit", (code) => this.#fail(new Error(`the simulation ended with code ${code}`)));
  }

  /** Calls a function of the bundle. */
  call<Name extends keyof Bundle>(name: Name, ...args: Arguments<Name>): Promise<Result<Name>> {
    return new Promise((resolve, reject) => {
      const id = ++this.#ids;
      this.#waiting.set(id, { resolve: (result) => resolve(result as Result<Name>), reject });
      this.#worker.postMessage({ id, name, args });
    });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
