// Shared by the getMany scenarios: reads of a number of adjacent keys by one caller.
import { timeFewer } from "./callers.mjs";
import { expectSum, openFilled, prefixSums } from "./reading.mjs";

const KEYS = 100;

/** `isText`: values are text for every library, not objects. */
export function getManyScenario({ isText, ...about }) {
  return {
    unit: "us",
    libraries: ["kv/xcache", "kv/keyv", "kv/cacheable", "kv/cache-manager", "kv/layered-loader"],
    ...about,

    async measure(open, seed) {
      const { driver, workload, sizeOf } = await openFilled(open, seed, { isText });
      const { keys, values } = workload;
      // Adjacent, so that the keys of a call are distinct: a position of the sequence is the first of them.
      const sequence = workload.sequence.map((first) => first % (keys.length - KEYS));
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
}
