// invalidateTags of a tag that 50,000 entries carry: how long, and does anybody else notice?
import { setTimeout as after } from "node:timers/promises";
import { fillInFlight } from "../kv/callers.mjs";
import { startPinger } from "../kv/pinger.mjs";
import { startServer } from "../kv/server.mjs";
import { median } from "../timing.mjs";
import { makeKeys, makeValues } from "../workload.mjs";

const ENTRIES = 50_000;
const REPEATS = 5;
const TAG = "everybody";
/** What an invalidation leaves for later is watched for SLICES * SLICE_MS. */
const SLICES = 10;
/**
 * A machine stops a process for a millisecond or two now and then, whoever asks for what. In so short a time that happens
 * in one repeat, what an invalidation does in most of them.
 */
const SLICE_MS = 20;
/** Faster commands are not worth the server's while to log. */
const LOGGED_US = 50;

export const scenario = {
  title: "invalidateTags of a tag on 50,000 entries",
  note:
    "The slowest command is the server's own measure (SLOWLOG, from 0.05 ms). PING is asked all the while on another connection, " +
    "from the invalidation until 200 ms after it, and during as long a time before it: the slowest one of each 20 ms is the median of " +
    "five invalidations, and the slowest of these medians is shown.",
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
    return {
      figure: median(runs.map(({ figure }) => figure)),
      slowestCommand: median(runs.map(({ slowestCommand }) => slowestCommand)),
      slowestPing: slowestOf(runs.map(({ pings }) => pings)),
      quietPing: slowestOf(runs.map(({ quietPings }) => quietPings)),
    };
  },
};

/** Each run is a list of slices. */
const slowestOf = (runs) => Math.max(...runs[0].map((_, slice) => median(runs.map((run) => run[slice]))));

async function watchInvalidation(server, driver, pinger) {
  await pinger.slowest();
  const quietPings = await slowestPings(pinger);
  await server.command("SLOWLOG", "RESET");
  const started = performance.now();
  await driver.invalidateTags([TAG]);
  const figure = performance.now() - started;
  const pings = await slowestPings(pinger);
  const log = await server.command("SLOWLOG", "GET", -1);
  const slowestUs = log.reduce((slowest, [, , microseconds]) => Math.max(slowest, microseconds), LOGGED_US);
  return { figure, slowestCommand: slowestUs / 1e3, pings, quietPings };
}

/** The slowest PING of each slice of time; the first slice begins where the last one was asked for. */
async function slowestPings(pinger) {
  const pings = [];
  for (let slice = 0; slice < SLICES; slice++) {
    await after(SLICE_MS);
    pings.push(await pinger.slowest());
  }
  return pings;
}

async function expectGone(driver, keys) {
  for (let at = 0; at < keys.length; at += 997) {
    if ((await driver.get(keys[at])) !== undefined) throw new Error(`${keys[at]} outlived its tag`);
  }
}
