// getOrSet of a present key in a full cache, with a new load function for every call as applications write it.
import { fill, timeReads } from "../reading.mjs";
import { fullWorkload } from "../workload.mjs";

export const scenario = {
  title: "getOrSet hit, full cache of 100,000, awaited, shared values",
  note:
    "Capacity 100,000, keys `user:<n>`, all present, asked for by Zipf(1.0); values are 200 objects of 200 bytes of JSON. " +
    "The baseline is a raw Map get; `map-awaited` is an async function over a Map.",
  baseline: "map",
  extra: { cpu: "CPU ns a call" },
  libraries: ["xcache", "map-awaited", "layered-loader", "lru-cache"],
  target: { text: ">= 0.40 by CPU time", reached: ({ cpuRatio }) => cpuRatio >= 0.4 },

  async measure(open, seed) {
    const workload = fullWorkload(seed);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    return timeReads(driver, driver.synchronous ? driver.get : driver.getOrSet, workload);
  },
};
