// getMany of 100 present keys, one caller.
import { timeFewer } from "../kv/callers.mjs";
import { expectSum, openFilled, prefixSums } from "../kv/reading.mjs";
import { sizeReader } from "../kv/workload.mjs";

const KEYS = 100;

export const scenario = {
  title: "getMany of 100 keys, 1 in flight",
  note: "The baseline is mget, which hands out the texts as they arrived. Only libraries that read several keys at once.",
  unit: "us",
  baseline: "kv/ioredis",
  libraries: ["kv/xcache", "kv/keyv", "kv/cacheable", "kv/cache-manager", "kv/layered-loader"],
  target: { text: ">= 1.0", reached: ({ ratio }) => ratio >= 1 },

  async measure(open, seed) {
    const { driver, workload } = await openFilled(open, seed);
    const { keys, values } = workload;
    // Neighbours, so that the keys of a call are distinct: a position of the sequence says where they begin.
    const sequence = workload.sequence.map((first) => first % (keys.length - KEYS));
    const sizeOf = sizeReader(driver);
    const sizeUpTo = prefixSums({ values, sequence: keys.map((_, at) => at) }, sizeOf);
    return timeFewer(sequence.length, 128, async (from, to) => {
      for (let at = from; at < to; at++) {
        const first = sequence[at];
        let sum = 0;
        for (const value of await driver.getMany(keys.slice(first, first + KEYS))) sum += sizeOf(value);
        expectSum(sum, sizeUpTo[first + KEYS] - sizeUpTo[first]);
      }
    });
  },
};
