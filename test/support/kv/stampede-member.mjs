// One process of a stampede: its callers all ask for one key at once, and its load ends when the test says so.
import { once } from "node:events";
import { XCache } from "xcache";
import { cacheWithClock, ManualClock } from "xcache/testing";

const { config, key, callers, isClockStill } = JSON.parse(process.argv[2] ?? "");
const cache = isClockStill ? cacheWithClock(config, new ManualClock()) : new XCache(config);

/** @param {object} message */
const say = (message) => process.send?.(message);
const told = () => once(process, "message").then(([word]) => word);

// Whoever listens stays, as a server with its socket does; a clock that stands still keeps no process alive.
process.on("message", () => {});
// The test ends it, or leaves nobody behind when it ends itself.
process.once("disconnect", () => process.exit());

await cache.connect();
say({ said: "ready" });
await told();

let loads = 0;
const finish = told();
const load = () => {
  loads++;
  say({ said: "loading" });
  return finish;
};
const answers = Promise.all(Array.from({ length: callers }, () => cache.getOrSet(key, load)));
say({ said: "asked" });
const values = await answers;
say({ said: "answered", loads, values });
