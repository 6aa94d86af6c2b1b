// getOrSet of a present key in a full cache, with a new load function for every call as applications write it.
import { fill, timeCpu } from "../reading.mjs";
import { fullWorkload } from "../workload.mjs";

export const scenario = {
  title: "getOrSet hit, full cache of 100,000, awaited, shared values",
  note:
    "Capacity 100,000, keys `user:<n>`, all present, asked for by Zipf(1.0); values are 200 objects of 200 bytes of JSON. " +
    "The baseline is a raw Map get; `map-awaited` is an async function over a Map.",
  baseline: "map",
  libraries: [
    "xcache",
    "map-awaited",
    "layered-loader",
    "lru-cache",
    "bentocache",
    "cacheable",
    "cache-manager",
    "async-cache-dedupe",
  ],
  target: { text: ">= 0.40", reached: ({ ratio }) => ratio >= 0.4 },

  async measure(open, seed) {
    const workload = fullWorkload(seed);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    return timeCpu(driver, driver.synchronous ? driver.get : driver.getOrSet, workload);
  },
};
