// Counts our own function calls for one miss: getOrSet of an absent key with one tag on a warm Redis cache.
// `node bench/kv/calls.mjs [--near] [--list 40] [path to a dist]` after `npm run build`.
import { Session } from "node:inspector/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { startServer } from "./server.mjs";

const { values, positionals } = parseArgs({
  options: { near: { type: "boolean", default: false }, list: { type: "string", default: "0" } },
  allowPositionals: true,
});
const dist = pathToFileURL(
  `${positionals[0] ?? fileURLToPath(new URL("../../dist", import.meta.url))}/`,
).href;
const { XCache } = await import(`${dist}index.js`);
const { url } = await startServer();
const cache = new XCache({ kvUrl: url, nearCache: values.near });

const miss = (key) => cache.getOrSet(key, async () => ({ key }), { ttl: 60, tags: ["tag"] });
for (let count = 0; count < 200; count++) await miss(`warm:${count}`);

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** Calls of one miss, by function. */
async function callsOf(key) {
  await session.post("Profiler.takePreciseCoverage");
  await miss(key);
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result
    .filter((script) => script.url.startsWith(dist))
    .flatMap((script) =>
      script.functions.map(({ functionName, ranges }) => ({
        name: `${functionName || "(anonymous)"} in ${script.url.slice(dist.length)}`,
        calls: ranges[0].count,
      })),
    )
    .filter(({ calls }) => calls > 0)
    .sort((a, b) => b.calls - a.calls);
}

// A heartbeat or a timer may fall into one of them: the median of several excludes it.
const runs = [];
for (let run = 0; run < 9; run++) runs.push(await callsOf(`miss:${run}`));
const total = (calls) => calls.reduce((sum, each) => sum + each.calls, 0);
runs.sort((a, b) => total(a) - total(b));
const median = runs[4];
console.log(`${total(median)} calls of ${median.length} functions (median of ${runs.length} misses)`);
for (const { name, calls } of median.slice(0, Number(values.list))) console.log(`${calls} ${name}`);
await cache.disconnect();
process.exit(0);
