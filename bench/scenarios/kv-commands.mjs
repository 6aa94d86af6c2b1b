// How many commands does the store execute for a read of an entry with two tags?
import { fillInFlight } from "../kv/callers.mjs";
import { startServer } from "../kv/server.mjs";
import { commandCalls } from "../kv/server-stats.mjs";
import { evenWorkload, twoTags } from "../kv/workload.mjs";

const READS = 5_000;

export const scenario = {
  title: "store commands per read of an entry with two tags, no tier in front",
  note: "Counted by the server (INFO commandstats) over 5,000 reads one after the other, whatever the libraries do in the background included.",
  unit: "commands",
  rounds: 2,
  libraries: ["kv/xcache", "kv/bentocache", "kv/cacheable", "kv/async-cache-dedupe"],
  target: { text: "<= 1.1", reached: ({ figure }) => figure <= 1.1 },

  async measure(open, seed) {
    const server = await startServer();
    const { keys, values, sequence } = evenWorkload(seed);
    const driver = await open({ url: server.url, tagged: true });
    await fillInFlight(driver, { keys, values }, twoTags);
    await read(driver, keys, values, sequence.subarray(0, READS));
    const before = await commandCalls(server);
    await read(driver, keys, values, sequence.subarray(READS, 2 * READS));
    return { figure: ((await commandCalls(server)) - before) / READS };
  },
};

async function read(driver, keys, values, sequence) {
  for (const at of sequence) {
    if ((await driver.get(keys[at])).size !== values[at].size)
      throw new Error(`${keys[at]} has another value`);
  }
}
