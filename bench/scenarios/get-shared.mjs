// get of a present key, which returns the stored object itself.
import { fill, timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

export const scenario = {
  title: "get hit, awaited, shared values",
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
    return timeReads(driver, driver.get, workload);
  },
};
