// getOrSet of absent keys with a load that answers immediately: the overhead on top of the load.
import { median } from "../timing.mjs";
import { makeKeys } from "../workload.mjs";

const KEYS = 50_000;
const REPEATS = 7;

export const scenario = {
  title: "getOrSet miss, load answers at once",
  note: "The baseline is a Map: get, await the load, set; no single flight, no ttl. Each repeat fills a new cache.",
  baseline: "map",
  libraries: [
    "xcache",
    "lru-cache",
    "layered-loader",
    "bentocache",
    "cacheable",
    "cache-manager",
    "async-cache-dedupe",
  ],

  async measure(open) {
    const keys = makeKeys(KEYS);
    let loads = 0;
    const load = async () => {
      loads++;
      return { size: 1 };
    };
    const times = [];
    // The first two warm up.
    for (let repeat = -2; repeat < REPEATS; repeat++) {
      const driver = await open({ capacity: KEYS * 2, load });
      loads = 0;
      const started = performance.now();
      const sum = await readAll(driver, keys);
      if (repeat >= 0) times.push(performance.now() - started);
      if (sum !== KEYS || loads !== KEYS)
        throw new Error(`${loads} loads and a sum of ${sum}, expected ${KEYS}`);
    }
    return { figure: (median(times) / KEYS) * 1e6 };
  },
};

async function readAll(driver, keys) {
  let sum = 0;
  for (const key of keys) sum += (await driver.getOrSet(key)).size;
  return sum;
}
