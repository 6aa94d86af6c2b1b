// Runs functions of a bundle that was made before, in a thread of its own: one after another, as they are asked for.
import { parentPort, workerData } from "node:worker_threads";

const simulation = await import(workerData.url);
let last = Promise.resolve();

parentPort?.on("message", ({ id, name, args }) => {
  last = last.then(async () => {
    try {
      parentPort?.postMessage({ id, result: await simulation[name](...args) });
    } catch (error) {
      parentPort?.postMessage({ id, error });
    }
  });
});
