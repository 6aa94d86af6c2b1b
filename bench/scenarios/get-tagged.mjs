// get of a present key that carries two tags.
import { fill, timeReads } from "../reading.mjs";
import { zipfWorkload } from "../workload.mjs";

export const scenario = {
  title: "get hit of entries with two tags, awaited, shared values",
  note: "1,000 teams and 10 kinds as tags. Only libraries with tags.",
  baseline: "map",
  libraries: ["xcache", "bentocache", "cacheable", "async-cache-dedupe"],

  async measure(open, seed) {
    const workload = zipfWorkload(seed);
    const teams = Array.from({ length: 1_000 }, (_, at) => `team:${at}`);
    const kinds = Array.from({ length: 10 }, (_, at) => `kind:${at}`);
    const driver = await open({ capacity: workload.capacity, tagged: true });
    await fill(driver, workload, (at) => [teams[at % teams.length], kinds[at % kinds.length]]);
    return timeReads(driver, driver.get, workload);
  },
};
