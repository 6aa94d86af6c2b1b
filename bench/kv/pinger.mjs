// A connection that does nothing but PING, on a thread of its own, so that only the server can keep it waiting.
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { openClient } from "./resp-client.mjs";

/** `slowest()` is the longest PING in milliseconds since it was last called, the one under way included. */
export async function startPinger(port) {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: port });
  worker.unref();
  const answer = () => new Promise((resolve) => worker.once("message", resolve));
  await answer();
  return {
    slowest: () => {
      worker.postMessage("slowest");
      return answer();
    },
  };
}

async function pingForEver(port) {
  const client = await openClient(port);
  let slowest = 0;
  let asked = false;
  parentPort.on("message", () => {
    asked = true;
  });
  parentPort.postMessage("ready");
  for (;;) {
    const started = performance.now();
    await client.command("PING");
    slowest = Math.max(slowest, performance.now() - started);
    if (!asked) continue;
    parentPort.postMessage(slowest);
    asked = false;
    slowest = 0;
  }
}

if (!isMainThread) await pingForEver(workerData);
