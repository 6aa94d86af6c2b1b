// Like cached-hit, but every number is equally frequent, so that nothing remembered of a call helps the next.
import { fill, timeReads } from "../reading.mjs";
import { randomFrom, zipfWorkload } from "../workload.mjs";

/** As `cached` builds it from the name `user` and a number. */
const keyOf = (id) => `user(${id})`;

/** Separate strings, like those from JSON: not the stored ones. */
const readyKeys = (ids) => JSON.parse(JSON.stringify(ids.map(keyOf)));

export const scenario = {
  title: "`cached` hit with one of 100,000 numbers, each as often as any other, awaited, shared values",
  note: "xcache against itself. The baseline is `getOrSet` with a key made of the number by a template in every call, as `cached` has to make one. `xcache-ready-keys` is `getOrSet` with keys that were made before: how far it is ahead is what making a key costs.",
  baseline: "xcache",
  libraries: ["xcache-cached", "xcache-ready-keys"],
  target: { text: ">= 0.80 (at most 25 % more time)", reached: ({ ratio }) => ratio >= 0.8 },

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const random = randomFrom(seed);
    const sequence = workload.sequence.map(() => Math.floor(random() * workload.keys.length));
    const ids = workload.keys.map((_, at) => at + 1_000_000);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, { ...workload, keys: ids.map(keyOf) });
    if (driver.hasReadyKeys)
      return timeReads(driver, driver.getOrSet, { ...workload, sequence, keys: readyKeys(ids) });
    const read = driver.getById ?? ((id) => driver.getOrSet(keyOf(id)));
    return timeReads(driver, read, { ...workload, sequence, keys: ids });
  },
};
