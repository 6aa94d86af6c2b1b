import { describe, expect, test } from "vitest";
import { Sampling } from "../../../../src/backends/memory/eviction/sampling.ts";

/** The maximum that the system's clock allows. */
const MOST_SKIPPED = 31;

/** Hits as a table counts them, with an insertion every `hitsPerInsertion`; returns how many of the latter half were recorded. */
function recordedOf(sampling: Sampling, hits: number, hitsPerInsertion: number): number {
  let recorded = 0;
  let skipping = 0;
  for (let hit = 1; hit <= hits; hit++) {
    if (hit % hitsPerInsertion === 0) sampling.inserted();
    if (skipping-- > 0) continue;
    skipping = sampling.isSparse ? sampling.skipped() : 0;
    sampling.recorded(1);
    if (hit > hits / 2) recorded++;
  }
  return recorded;
}

describe("the recorded hits are", () => {
  test("all of them, while there are fewer than eight per insertion", () => {
    expect(recordedOf(new Sampling(MOST_SKIPPED), 20_000, 7)).toBe(10_000);
    expect(recordedOf(new Sampling(MOST_SKIPPED), 20_000, 1)).toBe(10_000);
  });

  test("about eight per insertion, if there are more", () => {
    const recorded = recordedOf(new Sampling(MOST_SKIPPED), 200_000, 40);
    expect(recorded).toBeGreaterThan((100_000 / 40) * 6);
    expect(recorded).toBeLessThan((100_000 / 40) * 10);
  });

  test("about one in sixteen, if nothing is inserted", () => {
    const recorded = recordedOf(new Sampling(MOST_SKIPPED), 200_000, Number.POSITIVE_INFINITY);
    expect(recorded).toBeGreaterThan(100_000 / 18);
    expect(recorded).toBeLessThan(100_000 / 14);
  });

  test("all of them again, soon after insertions become frequent", () => {
    const sampling = new Sampling(MOST_SKIPPED);
    recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
    expect(sampling.isSparse).toBe(true);
    recordedOf(sampling, 100, 1);
    expect(sampling.isSparse).toBe(false);
  });

  test("all of them, if none may be skipped", () => {
    expect(recordedOf(new Sampling(0), 20_000, Number.POSITIVE_INFINITY)).toBe(10_000);
  });
});

test("a stride is random and never longer than allowed", () => {
  const sampling = new Sampling(MOST_SKIPPED);
  recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
  const skipped = Array.from({ length: 5_000 }, () => sampling.skipped());
  expect(Math.min(...skipped)).toBe(0);
  expect(Math.max(...skipped)).toBeLessThanOrEqual(MOST_SKIPPED);
  expect(new Set(skipped).size).toBeGreaterThan(25);
});

test("a recorded use stands for the hits skipped with it", () => {
  const sampling = new Sampling(MOST_SKIPPED);
  expect(sampling.recorded(1)).toBe(1);
  recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
  expect(sampling.recorded(1)).toBe(16);
});
