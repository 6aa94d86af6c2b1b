// A process that uses a cache until the server freezes; then it invalidates in vain, disconnects and has nothing left to do.
import { once } from "node:events";
import { XCache } from "xcache";

const { config, waitsForFailure } = JSON.parse(process.argv[2] ?? "");
const cache = new XCache(config);
await cache.set("k", "v", { tags: ["t"] });
for (let read = 0; read < 3; read++) await cache.get("k");

// Nobody listens after that, so that the channel to the test does not keep the process.
const frozen = once(process, "message");
process.send?.("connected");
await frozen;

const failure = cache.invalidateTags(["t"]).then(
  () => "none",
  (error) => error.code,
);
if (waitsForFailure) await failure;
const started = performance.now();
await cache.disconnect();
const disconnectMs = performance.now() - started;
process.send?.({ failure: await failure, disconnectMs });
