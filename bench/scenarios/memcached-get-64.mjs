// get of present keys from memcached, 64 concurrent callers.
import { fillInFlight } from "../kv/callers.mjs";
import { timeReads } from "../kv/reading.mjs";
import { atLeast } from "../kv/single-key.mjs";
import { asStored, evenWorkload } from "../kv/workload.mjs";
import { startServer } from "../memcached/server.mjs";

const IN_FLIGHT = 64;

export const scenario = {
  title: `get, ${IN_FLIGHT} in flight`,
  note:
    `${IN_FLIGHT} callers, each of which asks for another key as soon as it has its value. The baseline hands out the bytes as they ` +
    "arrived; xcache compares the entry with the namespace's stamp, which it reads with it, and decodes the value.",
  unit: "us",
  baseline: "memcached/memjs",
  libraries: ["memcached/xcache"],
  target: atLeast(4),

  async measure(open, seed) {
    const server = await startServer();
    const driver = await open({ url: server.url });
    const { values, ...workload } = evenWorkload(seed);
    const stored = { ...workload, values: values.map((value) => asStored(driver, value)) };
    await fillInFlight(driver, stored);
    return timeReads(driver, driver.get, stored, { inFlight: IN_FLIGHT, oneIn: 8 });
  },
};
