// A process whose server hangs while an invalidation is owed to it: disconnect() is in time, and then nothing keeps it.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { whyStale } from "../../../scripts/build/build.mjs";
import { SLACK_MS, TIMEOUT_MS } from "../../support/kv/trouble.ts";
import { startRedis } from "../../support/redis.ts";

/** A process ends within moments, even on a busy machine; a timer or socket of ours would keep it for longer. */
const MOMENTS_MS = 1_500;
const PROCESS = join(import.meta.dirname, "../../support/kv/frozen-exit-process.mjs");

beforeAll(() => {
  expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
});

test.each([
  ["after an invalidation has failed", { waitsForFailure: true, failure: "OPERATION_TIMEOUT" }],
  ["while an invalidation is under way", { waitsForFailure: false, failure: "DISCONNECTED" }],
])("a process that disconnects from a frozen server ends by itself, %s", async (_name, scene) => {
  await using server = await startRedis();
  const config = { kvUrl: server.url, nearCache: true, operationTimeout: TIMEOUT_MS / 1_000 };
  const { waitsForFailure, failure } = scene;
  const child = fork(PROCESS, [JSON.stringify({ config, waitsForFailure })]);
  const ended = once(child, "exit");
  const tooEarly = ended.then(() => expect.unreachable("it ended before it said anything"));
  const said = (): Promise<unknown> =>
    Promise.race([once(child, "message").then(([words]) => words), tooEarly]);
  const impatience = setTimeout(() => child.kill("SIGKILL"), 10_000);
  try {
    expect(await said()).toBe("connected");
    server.freeze();
    child.send("frozen");
    const { disconnectMs, ...rest } = (await said()) as { disconnectMs: number };
    const disconnectedAt = performance.now();
    expect(rest).toEqual({ failure });
    expect(disconnectMs).toBeLessThan(TIMEOUT_MS + SLACK_MS);
    expect(await ended).toEqual([0, null]);
    expect(performance.now() - disconnectedAt).toBeLessThan(MOMENTS_MS);
  } finally {
    child.kill("SIGKILL");
    clearTimeout(impatience);
  }
});
