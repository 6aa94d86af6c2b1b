// The figures of all processes, from a real server: each cache here has its own connections, as a process has.
import { beforeEach, expect, it } from "vitest";
import type { FleetStats } from "../../../src/core/stats.ts";
import type { XCache } from "../../../src/xcache.ts";
import { HeldClock } from "../../metrics/held-clock.ts";
import type { RedisServer } from "../../support/redis.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const caches = redisCaches({ operationTimeout: 5 });

/** A process, and the ten seconds after which it adds its counts. */
function openProcess(): { cache: XCache; clock: HeldClock } {
  const clock = new HeldClock();
  return { cache: caches.open({}, clock), clock };
}

const fleetOf = (cache: XCache): Promise<FleetStats> => cache.getStats({ fleet: true, since: 600 });

/** The contents of the store, as seen by a cache that adds nothing. */
const stored = (): Promise<FleetStats> => fleetOf(caches.open({ enableMetrics: false }));

/** How many write commands the server has executed, including those within scripts. */
async function writeCommands(server: RedisServer): Promise<number> {
  const writing = new Set((await server.cli("ACL", "CAT", "write")).split("\n"));
  let calls = 0;
  for (const [, name = "", count] of (await server.cli("INFO", "commandstats")).matchAll(
    /^cmdstat_([^:]+):calls=(\d+)/gm,
  )) {
    if (writing.has(name)) calls += Number(count);
  }
  return calls;
}

// A minute that ends meanwhile would separate the processes.
beforeEach(() => until(() => Date.now() % 60_000 < 50_000, { what: "a minute that lasts" }));

it("processes that add at the same moment lose nothing of each other, and each counts once", async () => {
  const processes = Array.from({ length: 4 }, openProcess);
  const rounds = 15;
  await Promise.all(
    processes.map(async ({ cache, clock }, at) => {
      await cache.set(`k${at}`, at);
      for (let round = 0; round < rounds; round++) {
        await cache.get(`k${at}`);
        await cache.get(`absent${at}`);
        // The counts, and that the process is alive.
        expect(clock.fire()).toBe(2);
      }
    }),
  );
  const stats = await until(
    async () => {
      const now = await stored();
      return now.totalOperations >= 4 * (2 * rounds + 1) && now;
    },
    { what: "everything is added" },
  );
  expect(stats).toMatchObject({
    totalHits: 4 * rounds,
    totalMisses: 4 * rounds,
    totalSets: 4,
    totalOperations: 4 * (2 * rounds + 1),
    hitRate: 0.5,
    processes: 4,
    totalKeys: 4,
  });
  const hits = stats.history.reduce((sum, minute) => sum + minute.totalHits, 0);
  expect(hits).toBe(stats.totalHits);
});

it("reading the fleet's figures writes nothing: the server sees two writes in ten seconds", async () => {
  const { cache, clock } = openProcess();
  await cache.set("k", 1);
  const before = await writeCommands(caches.server);
  for (let times = 1; times <= 20; times++) {
    await cache.get("k");
    expect(await fleetOf(cache)).toMatchObject({ totalHits: times, processes: 1 });
  }
  expect((await writeCommands(caches.server)) - before).toBe(0);
  expect((await stored()).history).toEqual([]);
  expect(clock.fire()).toBe(2);
  const added = await until(
    async () => {
      const now = await stored();
      return now.totalHits > 0 && now;
    },
    { what: "what was counted is added" },
  );
  expect(added).toMatchObject({ totalHits: 20, processes: 1 });
  await until(async () => (await writeCommands(caches.server)) - before === 2, {
    what: "the counts and the presence are written",
  });
});

it("two processes that read them each see the calls of a moment ago exactly once", async () => {
  const [one, other] = [openProcess(), openProcess()];
  await one.cache.set("k", 1);
  for (let hit = 0; hit < 2; hit++) await one.cache.get("k");
  for (let hit = 0; hit < 3; hit++) await other.cache.get("k");
  const seen = async (): Promise<(readonly [hits: number, processes: number])[]> => {
    const answers = await Promise.all([fleetOf(one.cache), fleetOf(other.cache)]);
    return answers.map(({ totalHits, processes }) => [totalHits, processes]);
  };
  expect(await seen()).toEqual([
    [2, 1],
    [3, 1],
  ]);
  one.clock.fire();
  // The answer waits for an addition in flight.
  expect(await fleetOf(one.cache)).toMatchObject({ totalHits: 2, processes: 1 });
  expect(await seen()).toEqual([
    [2, 1],
    [5, 2],
  ]);
  other.clock.fire();
  expect(await fleetOf(other.cache)).toMatchObject({ totalHits: 5, processes: 2 });
  expect(await seen()).toEqual([
    [5, 2],
    [5, 2],
  ]);
});
