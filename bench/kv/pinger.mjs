// A connection that only sends PING, on a separate thread, so that only the server can delay it.
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { openClient } from "./resp-client.mjs";

/** A PING as slow as this while the server is idle: the machine gave a core to another program. */
const PAUSE_MS = 1;
/** Pauses that follow each other faster than this count as one. */
const CALM_MS = 25;
/** A machine without a pause for this long is assumed to have none, and a busier one is not waited for. */
const PAUSES_WITHIN_MS = 1_000;
const CALM_WITHIN_MS = 5_000;

/**
 * `slowest()` is the longest PING in milliseconds since either was last answered, including the one in flight.
 *
 * `pausePassed()` resolves right after the machine has paused, and a new watch begins then. A kernel thread that wakes
 * up by the clock, twice a second say, falls into two of five watches of 200 ms that begin at any moment, whatever the
 * library did, and into none that begin right after it.
 */
export async function startPinger(port) {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: port });
  worker.unref();
  const answer = () => new Promise((resolve) => worker.once("message", resolve));
  const ask = (question) => {
    worker.postMessage(question);
    return answer();
  };
  await answer();
  return { slowest: () => ask("slowest"), pausePassed: () => ask("pausePassed") };
}

async function pingForEver(port) {
  const client = await openClient(port);
  let slowest = 0;
  let pausedAt = -Infinity;
  let asked;
  let askedAt;
  parentPort.on("message", (question) => {
    asked = question;
    askedAt = performance.now();
  });
  const pausePassed = (now) => {
    const waitedMs = now - askedAt;
    const isCalm = now - pausedAt >= CALM_MS;
    return waitedMs >= CALM_WITHIN_MS || (isCalm && (pausedAt > askedAt || waitedMs >= PAUSES_WITHIN_MS));
  };

  parentPort.postMessage("ready");
  for (;;) {
    const started = performance.now();
    await client.command("PING");
    const now = performance.now();
    slowest = Math.max(slowest, now - started);
    if (now - started >= PAUSE_MS) pausedAt = now;
    if (asked === undefined || (asked === "pausePassed" && !pausePassed(now))) continue;
    parentPort.postMessage(slowest);
    asked = undefined;
    slowest = 0;
  }
}

if (!isMainThread) await pingForEver(workerData);
