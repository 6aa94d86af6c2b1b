// get of a present key with a listener or while metrics are collected.
import { fill, timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

export const scenario = {
  title: "get hit with events and metrics, awaited, shared values",
  note: "xcache against itself: a listener on `hit`, metrics being collected, scraped and sent, metrics turned off.",
  baseline: "xcache",
  libraries: ["xcache-listener", "xcache-metrics", "xcache-pull", "xcache-push", "xcache-no-metrics"],

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const driver = await open({ capacity: workload.capacity });
    await fill(driver, workload);
    const figures = await timeReads(driver, driver.get, workload);
    if (driver.heard?.() < workload.sequence.length) throw new Error("the listener missed hits");
    return figures;
  },
};
