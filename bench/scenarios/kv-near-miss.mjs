// getOrSet of keys that the in-process tier does not hold and the store does, 64 concurrent callers.
import { fillInFlight } from "../kv/callers.mjs";
import { timeReads } from "../kv/reading.mjs";
import { startServer } from "../kv/server.mjs";
import { storeHitsPerCall } from "../kv/server-stats.mjs";
import { evenWorkload } from "../kv/workload.mjs";

export const scenario = {
  title: "getOrSet miss in the near tier, hit in the store, 64 in flight",
  note:
    "The keys are read in turn and the near tier has room for one in a hundred. The baseline is a bare socket: GETs of a tick in one write, JSON.parse. " +
    "Store reads are what the server counts when every key is read once more.",
  unit: "us",
  extra: { storeReads: "store reads a call" },
  baseline: "kv/minimal",
  libraries: ["kv/xcache", "kv/bentocache", "kv/cacheable", "kv/cache-manager", "kv/layered-loader"],
  target: { text: ">= 0.80", reached: ({ ratio }) => ratio >= 0.8 },

  async measure(open, seed) {
    const server = await startServer();
    const { keys, values, sequence } = evenWorkload(seed);
    const workload = { keys, values, sequence: sequence.map((_, at) => at % keys.length) };
    const driver = await open({ url: server.url, near: true, capacity: keys.length / 100 });
    await fillInFlight(driver, workload);
    const figures = await timeReads(driver, driver.getOrSet, workload, { inFlight: 64, oneIn: 8 });
    const storeReads = await storeHitsPerCall(server, keys.length, (at) => driver.getOrSet(keys[at]));
    return { ...figures, storeReads };
  },
};
