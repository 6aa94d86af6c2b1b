// get of present keys, 256 callers at once.
import { measureGets } from "../kv/reading.mjs";

export const scenario = {
  title: "get, 256 in flight",
  note: "256 callers, each of which asks for another key as soon as it has its value. Microseconds are wall time by number of reads.",
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
  target: { text: ">= 4.8", reached: ({ ratio }) => ratio >= 4.8 },

  measure: (open, seed) => measureGets(open, seed, { inFlight: 256, oneIn: 8 }),
};
