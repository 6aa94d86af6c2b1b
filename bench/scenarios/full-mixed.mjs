// getOrSet with about 92 % hits; missing values are loaded immediately and stored, and another entry is evicted.
import { fill, timeCpu } from "../reading.mjs";
import { fullWorkload } from "../workload.mjs";

const KEYS = 150_000;
const CAPACITY = 100_000;

export const scenario = {
  title: "getOrSet with about 92 % hits, full cache of 100,000, awaited, shared values",
  note:
    "Zipf(1.0) over 150,000 keys `user:<n>`, capacity 100,000; values are 200 objects of 200 bytes of JSON. A missing key is loaded at " +
    "once and stored. The baseline is an async function over a Map that has every key.",
  baseline: "map-awaited",
  extra: { hitRatio: "hits, %" },
  libraries: ["xcache", "layered-loader", "lru-cache"],
  target: { text: "<= 1,300 ns", reached: ({ figure }) => figure <= 1_300 },

  async measure(open, seed) {
    const workload = fullWorkload(seed, { keys: KEYS, capacity: CAPACITY });
    const storedValues = new Map(workload.keys.map((key, at) => [key, workload.values[at]]));
    let loads = 0;
    let calls = 0;
    const load = async (key) => {
      loads++;
      return storedValues.get(key);
    };
    const driver = await open({ capacity: CAPACITY, load });
    await fill(driver, workload);
    const read = (key) => {
      calls++;
      return driver.getOrSet(key);
    };
    const figures = await timeCpu(driver, read, workload);
    return { ...figures, hitRatio: 100 - (100 * loads) / calls };
  },
};
