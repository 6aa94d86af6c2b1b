// A process whose server hangs with an invalidation pending: disconnect() ends in time, and the process exits.
import { expect, test } from "vitest";
import { SLACK_MS, TIMEOUT_MS } from "../../support/kv/trouble.ts";
import { OwnProcess } from "../../support/own-process.ts";
import { soon } from "../../support/pace.ts";
import { startRedis } from "../../support/redis.ts";

/** A process ends within moments, even on a busy machine; a leaked timer or socket would keep it for longer. */
const MOMENTS_MS = 1_500;

const PROGRAM = `
import { XCache } from "./index.js";
const cache = new XCache(settings.config);
// The client is loaded within connect_timeout, which is longer than operation_timeout.
await cache.connect();
await cache.set("k", "v", { tags: ["t"] });
for (let read = 0; read < 3; read++) await cache.get("k");
const frozen = nextMessage();
say("connected");
await frozen;

const failure = cache.invalidateTags(["t"]).then(
  () => "none",
  (error) => error.code,
);
if (settings.waitsForFailure) await failure;
const started = performance.now();
await cache.disconnect();
const disconnectMs = performance.now() - started;
say("disconnected", { failure: await failure, disconnectMs });
`;

test.each([
  ["after an invalidation has failed", { waitsForFailure: true, failure: "OPERATION_TIMEOUT" }],
  ["while an invalidation is in flight", { waitsForFailure: false, failure: "DISCONNECTED" }],
])("a process that disconnects from a frozen server ends by itself, %s", async (_name, scene) => {
  await using server = await startRedis();
  const config = { kvUrl: server.url, nearCache: true, operationTimeout: TIMEOUT_MS / 1_000 };
  const { waitsForFailure, failure } = scene;
  await using own = new OwnProcess(PROGRAM, { settings: { config, waitsForFailure } });
  await own.heard("connected");
  server.freeze();
  own.tell();
  const { disconnectMs, ...rest } = await own.heard("disconnected");
  expect(rest).toEqual({ said: "disconnected", failure });
  expect(disconnectMs).toBeLessThan(TIMEOUT_MS + soon(SLACK_MS));
  expect(await own.ended(), own.errors).toEqual({ code: 0, signal: null });
  expect(own.lingeredMs).toBeLessThan(soon(MOMENTS_MS));
});
