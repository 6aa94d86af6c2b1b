// The holder of a key's lease: what taking the lease costs, how others wait without pushes, and what happens if the holder dies.
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GetOrSetOptions, Load } from "../../../src/core/options.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";
import { commandCounts, countAnew } from "../../support/kv/command-counts.ts";
import { StampedeProcess } from "../../support/kv/stampede-process.ts";
import { WireTap } from "../../support/kv/wire-tap.ts";
import { moment } from "../../support/moment.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const KEY = "cold";
const CALLERS = 100;
/** A holder that has not renewed its lease for this long counts as dead. It renews every second. */
const LEASE_MS = 6_000;
const RENEW_MS = 1_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis({ acl: ["user untold on >secret ~* &* +@all -client|tracking"] });
});
afterAll(() => server?.stop());

describe.concurrent("a process that is killed during its load", () => {
  test.each([
    ["nothing", false, async () => {}],
    [
      "a stale value, so that the record outlives the lease",
      true,
      async (cache: XCache) => {
        await cache.getOrSet(KEY, () => "old", { ttl: 0.02, staleIfError: 600 });
        await until(async () => !(await cache.exists(KEY)), { what: "it has expired" });
      },
    ],
  ])("over %s is waited for until its lease has run out, and no longer", async (over, outlives, store) => {
    const keyPrefix = `killed over ${over}`;
    const config = { kvUrl: server.url, keyPrefix };
    await using cache = new XCache(config);
    await store(cache);
    await using holder = new StampedeProcess({ config, key: KEY, callers: 1 });
    await holder.heard("ready");
    holder.tell({ ask: KEY });
    await holder.heard("loading");
    await holder.kill();
    expect(Number(await server.cli("PTTL", `${keyPrefix}:${KEY}`)) > LEASE_MS).toBe(outlives);

    const began = performance.now();
    let loads = 0;
    const load = (): string => {
      loads++;
      return "loaded by another";
    };
    const calls = Array.from({ length: CALLERS }, () => cache.getOrSet(KEY, load));
    expect(await Promise.all(calls)).toEqual(Array(CALLERS).fill("loaded by another"));
    const tookMs = performance.now() - began;
    expect(loads).toBe(1);
    // Its last renewal may have been some time before its end.
    expect(tookMs).toBeGreaterThan(LEASE_MS - 2 * RENEW_MS);
    expect(tookMs).toBeLessThan(LEASE_MS + soon(2_000));
    expect(await cache.get(KEY)).toBe("loaded by another");
  });
});

test("two processes without invalidation pushes load a key once for all their callers", async () => {
  const config = { kvUrl: server.url.replace("://", "://untold:secret@"), keyPrefix: "untold" };
  await using one = new StampedeProcess({ config, key: KEY, callers: CALLERS });
  await using other = new StampedeProcess({ config, key: KEY, callers: CALLERS });
  const both = [one, other];
  await Promise.all(both.map((each) => each.heard("ready")));
  expect(await server.cli("ACL", "LOG")).toContain("client|tracking");
  for (const each of both) each.tell({ ask: KEY });
  await Promise.all(both.map((each) => each.heard("asked")));
  await Promise.race(both.map((each) => each.heard("loading")));
  // The process that does not load polls.
  const reads = async (): Promise<number> => {
    const { get = 0, mget = 0 } = await commandCounts([server]);
    return get + mget;
  };
  const before = await reads();
  await until(async () => (await reads()) > before + 4, { what: "a waiter polls" });
  const watched = (await server.cli("CLIENT", "LIST")).split("\n").filter((line) => / flags=\S*t/.test(line));
  expect(watched.filter((line) => line.includes("user=untold"))).toEqual([]);
  for (const each of both) each.tell({ text: "loaded" });
  const answers = await Promise.all(both.map((each) => each.answered()));
  expect(answers.map(({ loads }) => loads).sort()).toEqual([0, 1]);
  expect(answers.flatMap(({ values }) => values)).toEqual(Array(2 * CALLERS).fill({ text: "loaded" }));
});

describe("before its load begins, a miss sends the server two commands: one for the entry, one for the lease", () => {
  let own: RedisServer;
  beforeAll(async () => {
    own = await startRedis();
  });
  afterAll(() => own?.stop());

  test.each<[string, GetOrSetOptions, (begun: () => Promise<void>) => Load<string>]>([
    [
      "without tags",
      {},
      (begun) => async () => {
        await begun();
        return "loaded";
      },
    ],
    [
      "with tags that are in use",
      { tags: ["a", "b"] },
      (begun) => async () => {
        await begun();
        return "loaded";
      },
    ],
    [
      "that may name tags later",
      {},
      (begun) => async (context) => {
        await begun();
        context.setTags(["late"]);
        return "loaded";
      },
    ],
  ])("%s", async (title, options, loadThen) => {
    using wire = new WireTap();
    // The clock stands still, so nothing else is sent meanwhile.
    const config = { kvUrl: own.url, keyPrefix: title, enableMetrics: false };
    await using cache = cacheWithClock(config, new ManualClock());
    // The first calls create and read the stamps, and load the script into the server.
    const early = loadThen(async () => {});
    for (const key of ["first", "second", "third"]) await cache.getOrSet(key, early, options);
    await countAnew([own]);
    wire.sent.length = 0;
    let trips: readonly (readonly string[])[] = [];
    let counts = {};
    const load = loadThen(async () => {
      trips = wire.sent.map(({ commands }) => commands.map(([name = ""]) => name));
      counts = await commandCounts([own]);
    });
    expect(await cache.getOrSet(KEY, load, options)).toBe("loaded");
    expect(trips).toEqual([["GET"], ["EVALSHA"]]);
    // The script reads the record and replaces it with the lease.
    expect(counts).toEqual({ get: 1, evalsha: 1, getrange: 1, set: 1 });
  });
});

test("any number of calls can wait for leases, and of loads listen to their signal, without a warning", async () => {
  const warnings: Error[] = [];
  const noted = (warning: Error): void => void warnings.push(warning);
  process.on("warning", noted);
  try {
    const config = { kvUrl: server.url, keyPrefix: "many waiters" };
    await using holder = new XCache(config);
    await using waiter = new XCache(config);
    const keys = Array.from({ length: 20 }, (_, at) => `key ${at}`);
    const release = moment();
    const begun = keys.map(() => moment());
    const loads = keys.map((key, at) =>
      holder.getOrSet(key, async ({ signal }) => {
        signal.addEventListener("abort", () => {});
        begun[at]?.let();
        await release.come;
        return key;
      }),
    );
    await Promise.all(begun.map(({ come }) => come));
    using wire = new WireTap();
    const waits = keys.map((key) => waiter.getOrSet(key, () => "loaded twice"));
    const reads = (): readonly string[] =>
      wire.sent.flatMap(({ commands }) => commands.filter(([name]) => /^M?GET$/.test(name ?? "")).flat());
    // The second time once it listens for changes of the lease.
    const isAwaited = (key: string): boolean => reads().filter((part) => part.endsWith(`:${key}`)).length > 1;
    await until(() => keys.every(isAwaited), { what: "every lease is waited for" });
    release.let();
    expect(await Promise.all(waits)).toEqual(keys);
    await Promise.all(loads);
  } finally {
    process.off("warning", noted);
  }
  expect(warnings).toEqual([]);
});
