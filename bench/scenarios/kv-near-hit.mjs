// getOrSet of a key that the in-process tier holds, with a new load function for every call.
import { fillInFlight, forEachInFlight } from "../kv/callers.mjs";
import { startServer } from "../kv/server.mjs";
import { storeHitsPerCall } from "../kv/server-stats.mjs";
import { timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

const COUNTED_CALLS = 10_000;

export const scenario = {
  title: "getOrSet hit in the near tier, awaited, shared values",
  note:
    "Every key was read once and fits; reads follow a Zipf(1.0) sequence over 100,000 keys. The baseline is a raw Map whose answer is awaited. " +
    "Store reads are what the server counts over 10,000 further calls.",
  extra: { storeReads: "store reads a call" },
  baseline: "kv/map-awaited",
  libraries: ["kv/xcache", "kv/bentocache", "kv/cacheable", "kv/cache-manager", "kv/layered-loader"],
  target: { text: ">= 0.85", reached: ({ ratio }) => ratio >= 0.85 },

  async measure(open, seed) {
    const server = await startServer();
    const workload = zipfWorkload(seed);
    const { keys, sequence } = workload;
    const driver = await open({ url: server.url, near: true, capacity: workload.capacity });
    await fillInFlight(driver, workload);
    await forEachInFlight(keys.length, (at) => driver.getOrSet(keys[at]));
    const figures = await timeReads(driver, driver.getOrSet, workload);
    const storeReads = await storeHitsPerCall(server, COUNTED_CALLS, (at) =>
      driver.getOrSet(keys[sequence[at]]),
    );
    return { ...figures, storeReads };
  },
};
