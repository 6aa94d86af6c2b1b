// get of a present key, every caller gets a separate value.
import { fill, timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

export const scenario = {
  title: "get hit, awaited, copied values",
  note: "Only libraries that hand out copies.",
  baseline: "bentocache",
  libraries: ["xcache", "cacheable", "cache-manager"],
  target: { text: ">= 8", reached: ({ ratio }) => ratio >= 8 },

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const driver = await open({ capacity: workload.capacity, copies: true });
    await fill(driver, workload);
    const [one, other] = [await driver.get(workload.keys[0]), await driver.get(workload.keys[0])];
    if (one === other) throw new Error("two callers got the same object");
    return timeReads(driver, driver.get, workload);
  },
};
