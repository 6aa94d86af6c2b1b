// get of present keys, 64 callers at once.
import { measureGets } from "../kv/reading.mjs";

export const scenario = {
  title: "get, 64 in flight",
  note: "64 callers, each of which asks for another key as soon as it has its value. Microseconds are wall time by number of reads.",
  unit: "us",
  baseline: "kv/ioredis",
  libraries: [
    "kv/xcache",
    "kv/bentocache",
    "kv/keyv",
    "kv/cacheable",
    "kv/cache-manager",
    "kv/layered-loader",
    "kv/async-cache-dedupe",
  ],
  target: { text: ">= 4.3", reached: ({ ratio }) => ratio >= 4.3 },

  measure: (open, seed) => measureGets(open, seed, { inFlight: 64, oneIn: 8 }),
};
