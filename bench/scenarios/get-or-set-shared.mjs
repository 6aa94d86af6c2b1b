// getOrSet of a present key, with a new load function for every call as applications write it.
import { fill, timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

export const scenario = {
  title: "getOrSet hit, awaited, shared values",
  note: "The baseline is a raw Map get. Where a library takes the load with each call, each call makes a new function.",
  baseline: "map",
  libraries: [
    "xcache",
    "map-awaited",
    "lru-cache",
    "layered-loader",
    "bentocache",
    "cacheable",
    "cache-manager",
    "async-cache-dedupe",
  ],
  target: { text: ">= 0.40", reached: ({ ratio }) => ratio >= 0.4 },

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    return timeReads(driver, driver.synchronous ? driver.get : driver.getOrSet, workload);
  },
};
