// get of a present key, one caller.
import { measureGets } from "../kv/reading.mjs";

export const scenario = {
  title: "get, 1 in flight",
  note: "The baseline hands out the text as it arrived; every library decodes it.",
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
  target: { text: ">= 0.95", reached: ({ ratio }) => ratio >= 0.95 },

  measure: (open, seed) => measureGets(open, seed, { inFlight: 1, oneIn: 32 }),
};
