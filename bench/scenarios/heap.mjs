// Memory per entry, beyond keys and values, which are held elsewhere before and after.
import { makeKeys, makeValues } from "../workload.mjs";

const ENTRIES = 1_000_000;

export const scenario = {
  title: "memory per entry beyond key and value, 1,000,000 entries with ttl",
  note:
    "heapUsed + external (array buffers are part of external) after garbage collection, with the cache full minus before it was made; " +
    "keys and values are held by plain arrays all the while, so the cache's own references to them count. A raw Map keeps no ttl.",
  unit: "B",
  rounds: 3,
  nodeFlags: ["--expose-gc", "--max-old-space-size=6144"],
  libraries: [
    "xcache",
    "map",
    "lru-cache",
    "layered-loader",
    "bentocache",
    "cacheable",
    "cache-manager",
    "async-cache-dedupe",
  ],
  target: { text: "<= 73 B", reached: ({ figure }) => figure <= 73 },

  async measure(open) {
    const keys = makeKeys(ENTRIES, "k");
    const values = makeValues(ENTRIES);
    const before = await usedBytes();
    const driver = await open({ capacity: ENTRIES });
    for (let at = 0; at < ENTRIES; at++) await driver.set(keys[at], values[at]);
    const after = await usedBytes();
    for (let at = 0; at < ENTRIES; at += 997) {
      if ((await driver.get(keys[at])) !== values[at]) throw new Error(`${keys[at]} is missing`);
    }
    return { figure: (after - before) / ENTRIES };
  },
};

async function usedBytes() {
  for (let turn = 0; turn < 4; turn++) {
    globalThis.gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
