// The figures of all processes, out of a real server: each cache here has connections of its own, as a process has.
import { expect, it } from "vitest";
import { redisCaches } from "../support/redis-caches.ts";

const caches = redisCaches({ operationTimeout: 10 });

it("processes that add at the same moment lose nothing of each other, and each counts once", async () => {
  const processes = Array.from({ length: 4 }, () => caches.open());
  const rounds = 15;
  await Promise.all(
    processes.map(async (cache, at) => {
      await cache.set(`k${at}`, at);
      for (let round = 0; round < rounds; round++) {
        await cache.get(`k${at}`);
        await cache.get(`absent${at}`);
        await cache.getStats({ fleet: true });
      }
    }),
  );
  const stats = await caches.open({ enableMetrics: false }).getStats({ fleet: true, since: 600 });
  expect(stats).toMatchObject({
    totalHits: 4 * rounds,
    totalMisses: 4 * rounds,
    totalSets: 4,
    hitRate: 0.5,
    processes: 4,
    totalKeys: 4,
  });
  const hits = stats.history.reduce((sum, minute) => sum + minute.totalHits, 0);
  expect(hits).toBe(stats.totalHits);
});
