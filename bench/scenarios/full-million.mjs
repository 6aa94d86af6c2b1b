// getOrSet of a present key in a full cache of a million entries.
import { fill, timeCpu } from "../reading.mjs";
import { fullWorkload } from "../workload.mjs";

const KEYS = 1_000_000;

export const scenario = {
  title: "getOrSet hit, full cache of 1,000,000, awaited, shared values",
  note: "Capacity 1,000,000, keys `user:<n>`, all present, asked for by Zipf(1.0); values are 200 objects of 200 bytes of JSON.",
  baseline: "map-awaited",
  libraries: ["xcache", "layered-loader", "lru-cache"],
  target: { text: "<= 1,000 ns", reached: ({ figure }) => figure <= 1_000 },

  async measure(open, seed) {
    const workload = fullWorkload(seed, { keys: KEYS });
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    return timeCpu(driver, driver.getOrSet, workload);
  },
};
