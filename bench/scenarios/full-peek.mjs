// A synchronous read of a present key in a full cache.
import { fill, timeCpu } from "../reading.mjs";
import { fullWorkload } from "../workload.mjs";

export const scenario = {
  title: "peek hit, full cache of 100,000, synchronous, shared values",
  note:
    "Capacity 100,000, keys `user:<n>`, all present, asked for by Zipf(1.0); values are 200 objects of 200 bytes of JSON. " +
    "The baseline is `get` of lru-cache with a ttl.",
  baseline: "lru-cache-get",
  libraries: ["xcache-peek", "map"],
  target: { text: ">= 1", reached: ({ ratio }) => ratio >= 1 },

  async measure(open, seed) {
    const workload = fullWorkload(seed);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    return timeCpu(driver, driver.get, workload);
  },
};
