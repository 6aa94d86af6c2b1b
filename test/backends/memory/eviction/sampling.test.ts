import { describe, expect, test } from "vitest";
import { Sampling } from "../../../../src/backends/memory/eviction/sampling.ts";

/** How many hits the system's clock lets pass at a time. */
const MOST_PASSED = 31;

/** Hits as a table counts them, with an insertion every `hitsPerInsertion`; returns how many of the latter half were recorded. */
function recordedOf(sampling: Sampling, hits: number, hitsPerInsertion: number): number {
  let recorded = 0;
  let passing = 0;
  for (let hit = 1; hit <= hits; hit++) {
    if (hit % hitsPerInsertion === 0) sampling.inserted();
    if (passing-- > 0) continue;
    const isTaken = sampling.takes();
    passing = sampling.pass(MOST_PASSED);
    if (!isTaken) continue;
    sampling.recorded(1);
    if (hit > hits / 2) recorded++;
  }
  return recorded;
}

/** How many hits there are from one recorded to the next. */
function strideOf(sampling: Sampling): number {
  let hits = 1;
  while (!sampling.takes()) hits++;
  return hits;
}

describe("the recorded hits are", () => {
  test("all of them, while there are fewer than eight per insertion", () => {
    expect(recordedOf(new Sampling(true), 20_000, 7)).toBe(10_000);
    expect(recordedOf(new Sampling(true), 20_000, 1)).toBe(10_000);
  });

  test("about eight per insertion, if there are more", () => {
    const recorded = recordedOf(new Sampling(true), 200_000, 40);
    expect(recorded).toBeGreaterThan((100_000 / 40) * 6);
    expect(recorded).toBeLessThan((100_000 / 40) * 10);
  });

  test("about one in sixty-four, if nothing is inserted", () => {
    const recorded = recordedOf(new Sampling(true), 800_000, Number.POSITIVE_INFINITY);
    expect(recorded).toBeGreaterThan(400_000 / 72);
    expect(recorded).toBeLessThan(400_000 / 56);
  });

  test("all of them again, soon after insertions become frequent", () => {
    const sampling = new Sampling(true);
    recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
    expect(sampling.isSparse).toBe(true);
    recordedOf(sampling, 100, 1);
    expect(sampling.isSparse).toBe(false);
  });

  test("all of them, if none may be skipped", () => {
    expect(recordedOf(new Sampling(false), 20_000, Number.POSITIVE_INFINITY)).toBe(10_000);
  });
});

test("a stride is random and less than twice as long as the mean", () => {
  const sampling = new Sampling(true);
  recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
  const strides = Array.from({ length: 5_000 }, () => strideOf(sampling));
  expect(Math.min(...strides)).toBe(1);
  expect(Math.max(...strides)).toBeLessThan(128);
  expect(new Set(strides).size).toBeGreaterThan(100);
});

test("hits pass only until the next recorded one, and no more at a time than allowed", () => {
  const sampling = new Sampling(true);
  expect(sampling.pass(MOST_PASSED)).toBe(0);
  recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
  for (let stride = 0; stride < 1_000; stride++) {
    while (!sampling.takes());
    let passed: number;
    do {
      passed = sampling.pass(MOST_PASSED);
      expect(passed).toBeLessThanOrEqual(MOST_PASSED);
    } while (passed > 0);
    expect(sampling.takes()).toBe(true);
  }
});

test("a recorded use stands for the hits skipped with it", () => {
  const sampling = new Sampling(true);
  expect(sampling.recorded(1)).toBe(1);
  recordedOf(sampling, 100_000, Number.POSITIVE_INFINITY);
  expect(sampling.recorded(1)).toBe(64);
});
