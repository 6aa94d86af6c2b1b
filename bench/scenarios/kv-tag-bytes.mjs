// How many bytes of the store do two tags add to an entry?
import { fillInFlight, forEachInFlight } from "../kv/callers.mjs";
import { startServer } from "../kv/server.mjs";
import { twoTags } from "../kv/workload.mjs";
import { makeKeys, makeValues, randomFrom } from "../workload.mjs";

const ENTRIES = 10_000;
/** Lengths are the sum of two that spread over this many bytes: the steps of the server's allocator average out. */
const SPREAD = 128;
const SCANNED = 1_000;

export const scenario = {
  title: "store bytes per entry for two tags",
  note:
    "MEMORY USAGE of everything in the store, with tags minus without, by 10,000 entries: records about the tags are part of it. " +
    "100 teams and 10 kinds as tags, values of 100 to 350 bytes of JSON.",
  unit: "B",
  rounds: 1,
  extra: { untagged: "whole entry without tags" },
  libraries: ["kv/xcache", "kv/bentocache", "kv/cacheable", "kv/async-cache-dedupe"],
  target: { text: "<= 40 B", reached: ({ figure }) => figure <= 40 },

  async measure(open) {
    const untagged = await bytesPerEntry(open);
    const tagged = await bytesPerEntry(open, twoTags);
    return { figure: tagged - untagged, untagged };
  },
};

async function bytesPerEntry(open, tagsOf) {
  const server = await startServer();
  const driver = await open({ url: server.url, tagged: tagsOf !== undefined });
  const random = randomFrom(1);
  const upToSpread = () => Math.floor(random() * SPREAD);
  const values = makeValues(ENTRIES).map(({ id, size, email }) => {
    return { id, size, email, text: "x".repeat(upToSpread() + upToSpread()) };
  });
  await fillInFlight(driver, { keys: makeKeys(ENTRIES), values }, tagsOf);
  let bytes = 0;
  let cursor = "0";
  do {
    const [next, keys] = await server.command("SCAN", cursor, "COUNT", SCANNED);
    await forEachInFlight(keys.length, async (at) => {
      const usage = await server.command("MEMORY", "USAGE", keys[at], "SAMPLES", 0);
      bytes += usage;
    });
    cursor = next;
  } while (cursor !== "0");
  return bytes / ENTRIES;
}
