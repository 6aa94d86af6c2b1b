// A call of a wrapped function with one number, whose result is present, next to the getOrSet that it replaces.
import { fill, timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

/** As `cached` builds it from the name `user` and a number. */
const keyOf = (id) => `user(${id})`;

export const scenario = {
  title: "`cached` hit with one number, awaited, shared values",
  note: "xcache against itself. The baseline is `getOrSet` with a key made of the same number by a template, and a new load function, in every call.",
  baseline: "xcache",
  libraries: ["xcache-cached"],
  target: { text: ">= 0.80 (at most 25 % more time)", reached: ({ ratio }) => ratio >= 0.8 },

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const ids = workload.keys.map((_, at) => at + 1_000_000);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, { ...workload, keys: ids.map(keyOf) });
    const read = driver.getById ?? ((id) => driver.getOrSet(keyOf(id)));
    return timeReads(driver, read, { ...workload, keys: ids });
  },
};
