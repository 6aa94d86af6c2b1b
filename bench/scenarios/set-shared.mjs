// set over a present key, with the default ttl; the object itself is kept.
import { fill } from "../reading.mjs";
import { timeChunks } from "../timing.mjs";
import { zipfWorkload } from "../workload.mjs";

export const scenario = {
  title: "set, awaited, shared values",
  note: "Every key is present already and is overwritten with another value.",
  baseline: "map",
  libraries: [
    "xcache",
    "map-awaited",
    "lru-cache",
    "layered-loader",
    "bentocache",
    "cacheable",
    "cache-manager",
    "async-cache-dedupe",
  ],
  target: { text: ">= 0.35", reached: ({ ratio }) => ratio >= 0.35 },

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const { keys, values, sequence } = workload;
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    const writeChunk = driver.synchronous ? writeAtOnce : writeAwaited;
    let last = [0, 0];
    const figures = await timeChunks(sequence.length, async (from, to) => {
      last = [from, to];
      await writeChunk(driver.set, keys, values, sequence, from, to);
    });
    await verify(driver, workload, ...last);
    return figures;
  },
};

/** The value written at a position: that of the key before it in the sequence. */
const sourceOf = (at) => (at === 0 ? 0 : at - 1);

function writeAtOnce(set, keys, values, sequence, from, to) {
  for (let at = from; at < to; at++) set(keys[sequence[at]], values[sequence[sourceOf(at)]]);
}

async function writeAwaited(set, keys, values, sequence, from, to) {
  for (let at = from; at < to; at++) await set(keys[sequence[at]], values[sequence[sourceOf(at)]]);
}

async function verify(driver, { keys, values, sequence }, from, to) {
  const expected = new Map();
  for (let at = from; at < to; at++) expected.set(keys[sequence[at]], values[sequence[sourceOf(at)]]);
  for (const [key, value] of expected) {
    if ((await driver.get(key)) !== value) throw new Error(`${key} does not hold the value written last`);
  }
}
