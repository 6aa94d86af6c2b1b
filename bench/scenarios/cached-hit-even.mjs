// As cached-hit, but every number comes as often as any other, so that nothing remembered of a call is of use to the next.
import { fill, timeReads } from "../reading.mjs";
import { randomFrom, zipfWorkload } from "../workload.mjs";

/** As `cached` makes it of the name `user` and a number. */
const keyOf = (id) => `user(${id})`;

/** Strings of their own, as those of JSON: not the ones that are stored. */
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
