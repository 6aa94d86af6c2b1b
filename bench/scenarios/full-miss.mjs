// getOrSet of absent keys in a full cache with a load that answers immediately: the overhead on top of the load.
import { byCpu, timeChunks } from "../timing.mjs";
import { makeKeys, makeValues } from "../workload.mjs";

const KEYS = 1 << 20;
const CAPACITY = 100_000;

export const scenario = {
  title: "getOrSet miss, full cache of 100,000, load answers at once, shared values",
  note:
    "Every call is for a key that is absent: it is loaded, stored, and another entry is evicted. The baseline is an async function over " +
    "a Map without a bound: get, await the load, set; no single flight, no ttl.",
  baseline: "map-awaited",
  libraries: ["xcache", "layered-loader", "lru-cache"],
  target: { text: "<= 4,000 ns", reached: ({ figure }) => figure <= 4_000 },

  async measure(open) {
    const keys = makeKeys(KEYS);
    const [value] = makeValues(1);
    let loads = 0;
    const load = async () => {
      loads++;
      return value;
    };
    let driver = await open({ capacity: CAPACITY, load });
    const figures = await timeChunks(KEYS, async (from, to) => {
      // Without a bound the second round would be hits.
      if (from === 0 && loads >= KEYS) driver = await open({ capacity: CAPACITY, load });
      const before = loads;
      for (let at = from; at < to; at++) await driver.getOrSet(keys[at]);
      if (loads - before !== to - from) throw new Error(`${loads - before} loads, expected ${to - from}`);
    });
    return byCpu(figures);
  },
};
