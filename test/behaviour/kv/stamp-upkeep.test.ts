// Stamps on a real server: those in use do not look idle to it, and their ttl is rarely extended.
import { beforeAll, describe, expect, it } from "vitest";
import { ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

// The clock advances faster than the server answers.
const caches = redisCaches({ operationTimeout: 60 }, { movableClock: true });
const { open } = caches;

const UPKEEP_MS = 5_000;

beforeAll(async () => {
  // A server with LFU eviction counts uses; with these settings it counts each one exactly.
  for (const [setting, value] of [
    ["maxmemory-policy", "allkeys-lfu"],
    ["lfu-log-factor", "0"],
    ["lfu-decay-time", "1000"],
  ] as const)
    await caches.server.cli("config", "set", setting, value);
});

const stampOf = (tag: string): string => `${caches.prefix}!t:${tag}`;
const namespaceStamp = (): string => `${caches.prefix}!n`;

/** How often a key was used, as counted by the server; this query does not count. */
const uses = async (...keys: readonly string[]): Promise<readonly number[]> =>
  Promise.all(keys.map(async (key) => Number(await caches.server.cli("object", "freq", key))));

/** Reads until everything cacheable is cached in this process. */
async function warm(cache: XCache, key: string): Promise<void> {
  for (let read = 0; read < 3; read++) expect(await cache.get(key)).toBe(key);
}

/** Advances the clock, without reads, until the server has counted one more use of the key. */
async function untilUseCounted(clock: ManualClock, key: string): Promise<void> {
  const [before = 0] = await uses(key);
  await until(() => clock.advance(UPKEEP_MS / 2).then(async () => (await uses(key))[0]! > before), {
    what: `the server counts a use of ${key}`,
    timeoutMs: 4_000,
  });
}

describe("stamps relied on without asking the server", () => {
  it.each([true, false])("are reported to it every few seconds (near cache %s)", async (nearCache) => {
    const clock = new ManualClock();
    const cache = open({ nearCache }, clock);
    await cache.set("hot", "hot", { tags: ["hot"] });
    const stamps = [namespaceStamp(), stampOf("hot")];
    for (let round = 0; round < 2; round++) {
      await warm(cache, "hot");
      const before = await uses(...stamps);
      for (let read = 0; read < 20; read++) await warm(cache, "hot");
      expect(await uses(...stamps), "reads themselves do not show").toEqual(before);
      await untilUseCounted(clock, stampOf("hot"));
      expect(await uses(...stamps)).toEqual(before.map((count) => count + 1));
    }
  });

  it("are reported to it only while they are in use", async () => {
    const clock = new ManualClock();
    const cache = open({}, clock);
    for (const key of ["idle", "hot"]) {
      await cache.set(key, key, { tags: [key] });
      await warm(cache, key);
    }
    // Both were used until now.
    await untilUseCounted(clock, stampOf("hot"));
    await warm(cache, "hot");
    const before = await uses(stampOf("idle"));
    await untilUseCounted(clock, stampOf("hot"));
    expect(await uses(stampOf("idle"))).toEqual(before);
  });

  it("are reported to it for as long as they are in use, even by a process whose reads are all near hits", async () => {
    // Its clock stands still, so it reports nothing to the server.
    const writer = open({}, new ManualClock(undefined, 2));
    await writer.set("hot", "hot", { tags: ["hot"] });
    const clock = new ManualClock();
    const reader = open({ nearCache: true, enableMetrics: false }, clock);
    await warm(reader, "hot");
    const [entry] = await uses(`${caches.prefix}:hot`);
    const began = clock.now() - performance.now();
    const reported: number[] = [];
    for (let upkeep = 0; upkeep < 8; upkeep++) {
      const [before = 0] = await uses(stampOf("hot"));
      for (let step = 0; step < 10; step++) {
        await clock.advance(UPKEEP_MS / 10);
        // The server's clock keeps pace: near copies are dropped when the two clocks drift apart.
        caches.server.setClock((clock.now() - performance.now() - began) / 1_000);
        // Proves that the server's pushes arrive; it reads no record.
        expect(await reader.health()).toBe(true);
        expect(await reader.get("hot")).toBe("hot");
      }
      reported.push((await uses(stampOf("hot")))[0]! - before);
    }
    expect(await uses(`${caches.prefix}:hot`), "all of it was served near").toEqual([entry]);
    // A round begins when the previous one has ended, so now and then one falls into the next 5 s.
    const rounds = reported.filter((times) => times > 0).length;
    expect(rounds, `reported in each 5 s: ${reported}`).toBeGreaterThan(5);
  });
});

/** How many scripts the server has run: one for every stamp created or extended. */
async function scripts(): Promise<number> {
  const stats = await caches.server.cli("info", "commandstats");
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

const secondsLeft = async (key: string): Promise<number> =>
  Number(await caches.server.cli("pttl", key)) / 1_000;

describe("the life of a stamp", () => {
  const TTL_S = 4;

  it("is extended when less than half of it is left, not before, however much is stored", async () => {
    const clock = new ManualClock();
    const cache = open({}, clock);
    let stored = 0;
    const storeMany = async (): Promise<void> => {
      for (let entry = 0; entry < 25; entry++)
        await cache.set(`k${stored++}`, 1, { ttl: TTL_S, tags: ["t"] });
    };
    const storeForMost = async (): Promise<void> => {
      for (let step = 0; step < 9; step++) {
        await clock.advance(TTL_S * 100);
        await storeMany();
      }
    };
    await storeMany();
    const made = await scripts();
    await storeForMost();
    expect(await scripts()).toBe(made);
    await clock.advance(TTL_S * 150);
    await storeMany();
    expect(await scripts(), "the first that it would not outlive").toBe(made + 1);
    await storeForMost();
    expect(await scripts()).toBe(made + 1);
    expect(await cache.get(`k${stored - 1}`)).toBe(1);
  });

  it("is twice the longest ttl requested, and a shorter one changes nothing", async () => {
    const cache = open();
    const store = (ttl: number): Promise<void> => cache.set(`for-${ttl}`, 1, { ttl, tags: ["t"] });
    await store(30);
    const first = await secondsLeft(stampOf("t"));
    expect(first).toBeGreaterThan(30);
    expect(first).toBeLessThanOrEqual(60);
    await store(300);
    const longest = await secondsLeft(stampOf("t"));
    expect(longest).toBeGreaterThan(540);
    expect(longest).toBeLessThanOrEqual(600);
    const before = await scripts();
    await store(30);
    expect(await scripts()).toBe(before);
    expect(await secondsLeft(stampOf("t"))).toBeGreaterThan(540);
  });

  it("is unlimited for a namespace", async () => {
    await open().set("k", 1, { ttl: 1 });
    expect(await caches.server.cli("pttl", namespaceStamp())).toBe("-1");
  });
});
