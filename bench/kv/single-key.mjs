// Shared by the single-key scenarios: the libraries, the baseline, and reads by concurrent callers.
import { openFilled, timeReads } from "./reading.mjs";

export const SINGLE_KEY = {
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
};

/** Throughput relative to the baseline's. */
export const atLeast = (least) => ({ text: `>= ${least}`, reached: ({ ratio }) => ratio >= least });

/** get of present keys by `inFlight` callers; a chunk holds one operation in `oneIn`. */
export function getScenario({ inFlight, oneIn, least, note = busyNote(inFlight) }) {
  return {
    ...SINGLE_KEY,
    title: `get, ${inFlight} in flight`,
    note,
    target: atLeast(least),

    async measure(open, seed) {
      const { driver, workload } = await openFilled(open, seed);
      return timeReads(driver, driver.get, workload, { inFlight, oneIn });
    },
  };
}

const busyNote = (callers) =>
  `${callers} callers, each of which asks for another key as soon as it has its value. Microseconds are wall time by number of reads.`;
