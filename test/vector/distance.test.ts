// Each metric against its definition, and its score against the documentation.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DISTANCES, type DistanceName, METRICS, prepare } from "../../src/vector/distance.ts";

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

const BY_DEFINITION: Readonly<Record<DistanceName, (a: readonly number[], b: readonly number[]) => number>> =
  {
    cosine: (a, b) => {
      const length = (v: readonly number[]): number => Math.sqrt(sum(v.map((part) => part * part)));
      return Math.max(0, sum(a.map((part, at) => part * b[at]!)) / (length(a) * length(b)));
    },
    dot: (a, b) => sum(a.map((part, at) => part * b[at]!)),
    euclidean: (a, b) => 1 / (1 + Math.sqrt(sum(a.map((part, at) => (part - b[at]!) ** 2)))),
    manhattan: (a, b) => 1 / (1 + sum(a.map((part, at) => Math.abs(part - b[at]!)))),
  };

function scoreOf(metric: DistanceName, a: readonly number[], b: readonly number[]): number {
  const measure = DISTANCES[metric];
  const rows = Float32Array.of(7, 7, ...prepare(Float32Array.from(a), measure), 7);
  return measure.score(measure.nearness(rows, 2, prepare(Float32Array.from(b), measure)));
}

const pairs = fc.integer({ min: 1, max: 19 }).chain((length) => {
  const part = fc.integer({ min: -100, max: 100 }).map((whole) => whole / 8);
  const vector = fc
    .array(part, { minLength: length, maxLength: length })
    .filter((parts) => parts.some((each) => each !== 0));
  return fc.tuple(vector, vector);
});

describe.each(METRICS)("%s", (metric) => {
  test("scores two vectors of any length by its definition", () => {
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        const expected = BY_DEFINITION[metric](a, b);
        expect(Math.abs(scoreOf(metric, a, b) - expected)).toBeLessThan(
          2e-6 * Math.max(1, Math.abs(expected)),
        );
      }),
    );
  });

  test("is the same in both directions, and one for a vector and itself where scores have bounds", () => {
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        expect(scoreOf(metric, a, b)).toBeCloseTo(scoreOf(metric, b, a), 5);
        if (DISTANCES[metric].isBounded) expect(scoreOf(metric, a, a)).toBe(1);
      }),
    );
  });

  test("rules out no vector whose score reaches the threshold", () => {
    const measure = DISTANCES[metric];
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        const nearness = measure.nearness(
          prepare(Float32Array.from(a), measure),
          0,
          prepare(Float32Array.from(b), measure),
        );
        expect(measure.leastNearness(measure.score(nearness))).toBeLessThanOrEqual(nearness);
      }),
    );
  });
});

test("a cosine of opposite directions is zero, and lengths do not count", () => {
  expect(scoreOf("cosine", [1, 2], [-1, -2])).toBe(0);
  expect(scoreOf("cosine", [1e-30, 2e-30], [3e30, 6e30])).toBe(1);
});
