// getOrSet of a key that the in-process tier holds, which is full, with a new load function for every call.
import { fillInFlight, forEachInFlight } from "../kv/callers.mjs";
import { startServer } from "../kv/server.mjs";
import { storeHitsPerCall } from "../kv/server-stats.mjs";
import { timeCpu } from "../reading.mjs";
import { fullWorkload } from "../workload.mjs";

const COUNTED_CALLS = 10_000;

export const scenario = {
  title: "getOrSet hit in a full near tier of 100,000, awaited, shared values",
  note:
    "Capacity 100,000, keys `user:<n>`, all present, asked for by Zipf(1.0); values are objects of 200 bytes of JSON. The baseline is an " +
    "async function over a Map in front of a raw socket. Store reads are what the server counts over 10,000 further calls.",
  extra: { storeReads: "store reads a call" },
  baseline: "kv/map-minimal",
  libraries: ["kv/xcache", "kv/layered-loader"],
  target: { text: ">= 0.90", reached: ({ ratio }) => ratio >= 0.9 },

  async measure(open, seed) {
    const server = await startServer();
    const workload = fullWorkload(seed);
    const { keys, sequence } = workload;
    const driver = await open({ url: server.url, near: true, capacity: workload.capacity });
    await fillInFlight(driver, workload);
    await forEachInFlight(keys.length, (at) => driver.getOrSet(keys[at]));
    const figures = await timeCpu(driver, driver.getOrSet, workload);
    const storeReads = await storeHitsPerCall(server, COUNTED_CALLS, (at) =>
      driver.getOrSet(keys[sequence[at]]),
    );
    return { ...figures, storeReads };
  },
};
