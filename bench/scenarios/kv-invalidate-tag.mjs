// invalidateTags of a tag that 50,000 entries carry: how long does it take, and does it delay other clients?
import { setTimeout as after } from "node:timers/promises";
import { fillInFlight } from "../kv/callers.mjs";
import { startPinger } from "../kv/pinger.mjs";
import { startServer } from "../kv/server.mjs";
import { median } from "../timing.mjs";
import { makeKeys, makeValues } from "../workload.mjs";

const ENTRIES = 50_000;
const REPEATS = 3;
const TAG = "everybody";
/** How long deferred work of an invalidation is watched for. */
const WATCHED_MS = 200;
/** Faster commands are not logged by the server. */
const LOGGED_US = 50;

export const scenario = {
  title: "invalidateTags of a tag on 50,000 entries",
  note:
    "The slowest command is the server's own measure (SLOWLOG, from 0.05 ms). PING is asked all the while on another connection; " +
    "the slowest one from the invalidation until 200 ms after it, and during as long a time before it. " +
    "Both watches begin right after the machine has paused by itself, where it does (bench/README.md).",
  unit: "ms",
  rounds: 3,
  extra: {
    slowestCommand: "slowest command, ms",
    slowestPing: "slowest PING, ms",
    quietPing: "slowest PING before, ms",
  },
  libraries: ["kv/xcache", "kv/bentocache", "kv/cacheable", "kv/async-cache-dedupe"],
  target: {
    text: "<= 1 ms, no command over 1 ms, PING within 1 ms of before",
    reached: ({ figure, slowestCommand, slowestPing, quietPing }) =>
      figure <= 1 && slowestCommand <= 1 && slowestPing <= quietPing + 1,
  },

  async measure(open) {
    const server = await startServer();
    await server.command("CONFIG", "SET", "slowlog-log-slower-than", LOGGED_US);
    await server.command("CONFIG", "SET", "slowlog-max-len", 2 * ENTRIES);
    const driver = await open({ url: server.url, tagged: true });
    const pinger = await startPinger(server.port);
    const entries = { keys: makeKeys(ENTRIES), values: makeValues(ENTRIES) };
    const runs = [];
    // The first one warms up.
    for (let repeat = -1; repeat < REPEATS; repeat++) {
      await fillInFlight(driver, entries, () => [TAG]);
      const run = await watchInvalidation(server, driver, pinger);
      if (repeat >= 0) runs.push(run);
      await expectGone(driver, entries.keys);
    }
    return Object.fromEntries(
      Object.keys(runs[0]).map((name) => [name, median(runs.map((run) => run[name]))]),
    );
  },
};

async function watchInvalidation(server, driver, pinger) {
  await pinger.pausePassed();
  await after(WATCHED_MS);
  const quietPing = await pinger.slowest();
  await pinger.pausePassed();
  await server.command("SLOWLOG", "RESET");
  const started = performance.now();
  await driver.invalidateTags([TAG]);
  const figure = performance.now() - started;
  await after(WATCHED_MS);
  const slowestPing = await pinger.slowest();
  const log = await server.command("SLOWLOG", "GET", -1);
  const slowestUs = log.reduce((slowest, [, , microseconds]) => Math.max(slowest, microseconds), LOGGED_US);
  return { figure, slowestCommand: slowestUs / 1e3, slowestPing, quietPing };
}

async function expectGone(driver, keys) {
  for (let at = 0; at < keys.length; at += 997) {
    if ((await driver.get(keys[at])) !== undefined) throw new Error(`${keys[at]} outlived its tag`);
  }
}
