// Advice: each finding follows from the figures of a real cache, and an idle cache has none.
import { expect, it, onTestFinished } from "vitest";
import { cached, XCache } from "../../src/index.ts";

function opened(): XCache {
  const cache = new XCache({ kvUrl: "memory://" });
  onTestFinished(() => cache.disconnect());
  return cache;
}

it("an idle cache has no advice, and asking for it is not counted", async () => {
  const cache = opened();
  await cache.set("a", 1, { ttl: 60 });
  const before = cache.getComprehensiveMetrics().totalOperations;
  expect(await cache.advise()).toEqual([]);
  expect(cache.getComprehensiveMetrics().totalOperations).toBe(before);
  await expect(cache.advise({ since: -1 })).rejects.toThrow(/since/);
});

it("finds functions that never hit, entries without a ttl, tags that churn and large values, worst first", async () => {
  const cache = opened();
  const lookUp = cached(async (id: number) => id, { cache, name: "lookUp", ttl: 60 });
  for (let id = 0; id < 60; id++) await lookUp(id);
  for (let at = 0; at < 20; at++) await cache.set(`session:${at}`, at, { ttl: Number.POSITIVE_INFINITY });
  for (let times = 0; times < 60; times++) await cache.invalidateTags("catalog");
  await cache.set("big", "x".repeat(2_000_000), { ttl: 60 });
  const advice = await cache.advise();
  expect(advice.map(({ code }) => code)).toEqual([
    "FUNCTION_NEVER_HITS",
    "ENTRIES_WITHOUT_TTL",
    "LARGE_VALUES",
    "TAG_CHURN",
  ]);
  expect(advice[0]).toMatchObject({
    severity: "problem",
    evidence: "60 calls, 60 loads, no hit.",
    about: { kind: "function", name: "lookUp" },
  });
  expect(advice[1]?.about).toEqual({ kind: "prefix", name: "session:" });
});
