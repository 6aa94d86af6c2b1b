// set over present keys, 64 concurrent callers.
import { timeFewer } from "../kv/callers.mjs";
import { openFilled } from "../kv/reading.mjs";
import { atLeast, SINGLE_KEY } from "../kv/single-key.mjs";
import { sizeReader } from "../kv/workload.mjs";

const IN_FLIGHT = 64;

export const scenario = {
  ...SINGLE_KEY,
  title: "set, 64 in flight",
  note: "Every key is present and is overwritten with another value. The baseline writes text that is ready, without a ttl; every library encodes and sets one.",
  target: atLeast(2.8),

  async measure(open, seed) {
    const { driver, workload } = await openFilled(open, seed);
    const { keys, values, sequence } = workload;
    const { set } = driver;
    let last = 0;
    const figures = await timeFewer(sequence.length, 8, async (from, to) => {
      let next = from;
      const caller = async () => {
        while (next < to) {
          const at = next++;
          await set(keys[sequence[at]], values[sourceOf(sequence, at)]);
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
      last = to - 1;
    });
    const size = sizeReader(driver);
    const [found, expected] = [await driver.get(keys[sequence[last]]), values[sourceOf(sequence, last)]];
    if (size(found) !== size(expected)) throw new Error("a key does not hold the value written last");
    return figures;
  },
};

/** The value written at a position: that of the key before it in the sequence. */
const sourceOf = (sequence, at) => sequence[at === 0 ? 0 : at - 1];
