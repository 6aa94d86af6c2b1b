import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Histogram, LATENCY_BUCKETS } from "../../../src/metrics/recording/histogram.ts";

function filled(samples: readonly number[]): Histogram {
  const histogram = new Histogram();
  for (const sample of samples) histogram.add(sample);
  return histogram;
}

/** The bounds of the bucket that holds a sample. */
function bucketOf(sample: number): [low: number, high: number] {
  const at = LATENCY_BUCKETS.findIndex((bound) => sample <= bound);
  if (at < 0) return [LATENCY_BUCKETS.at(-1) as number, LATENCY_BUCKETS.at(-1) as number];
  return [at === 0 ? 0 : (LATENCY_BUCKETS[at - 1] as number), LATENCY_BUCKETS[at] as number];
}

describe("the buckets", () => {
  it("go from 0.05 ms to 10 s and rise", () => {
    expect(LATENCY_BUCKETS[0]).toBe(0.00005);
    expect(LATENCY_BUCKETS.at(-1)).toBe(10);
    expect([...LATENCY_BUCKETS].sort((a, b) => a - b)).toEqual(LATENCY_BUCKETS);
  });

  it("count a sample on a bound below it, and one above all bounds in the last", () => {
    const histogram = filled([0.00005, 0.000051, 10, 11]);
    expect([...histogram.counts].map((count, at) => [at, count]).filter(([, count]) => count !== 0)).toEqual([
      [0, 1],
      [1, 1],
      [LATENCY_BUCKETS.length - 1, 1],
      [LATENCY_BUCKETS.length, 1],
    ]);
  });
});

describe("quantiles", () => {
  it("are all 0 without samples", () => {
    const empty = new Histogram();
    expect([empty.mean(), empty.quantile(0), empty.quantile(0.5), empty.quantile(1)]).toEqual([0, 0, 0, 0]);
  });

  it("lie in the bucket of the sample at that rank", () => {
    const sample = fc.double({ min: 1e-6, max: 20, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(sample, { minLength: 1, maxLength: 200 }),
        fc.double({ min: 0.001, max: 1, noNaN: true }),
        (samples, fraction) => {
          const sorted = samples.toSorted((a, b) => a - b);
          const exact = sorted[Math.ceil(fraction * sorted.length) - 1] as number;
          const [low, high] = bucketOf(exact);
          const estimate = filled(samples).quantile(fraction);
          expect(estimate).toBeGreaterThanOrEqual(low - 1e-12);
          expect(estimate).toBeLessThanOrEqual(high + 1e-12);
        },
      ),
    );
  });

  it("never decrease as the fraction rises", () => {
    const histogram = filled([0.0002, 0.003, 0.003, 0.04, 0.5, 6, 30]);
    let last = 0;
    for (let fraction = 0; fraction <= 1; fraction += 0.01) {
      expect(histogram.quantile(fraction)).toBeGreaterThanOrEqual(last);
      last = histogram.quantile(fraction);
    }
  });

  it("are interpolated within a bucket", () => {
    const histogram = filled(Array.from({ length: 100 }, () => 0.7));
    expect(histogram.quantile(0.5)).toBeCloseTo(0.75);
    expect(histogram.quantile(1)).toBe(1);
  });

  it("above the last bound are that bound, since no more is known", () => {
    expect(filled([50, 60]).quantile(0.99)).toBe(10);
  });
});

describe("merge", () => {
  it("is the same as adding all samples to one", () => {
    const samples = fc.array(fc.double({ min: 0, max: 20, noNaN: true }), { maxLength: 50 });
    fc.assert(
      fc.property(samples, samples, (some, others) => {
        const merged = filled(some);
        merged.merge(filled(others));
        const whole = filled([...some, ...others]);
        expect(merged.counts).toEqual(whole.counts);
        expect(merged.count).toBe(whole.count);
        expect(merged.mean()).toBeCloseTo(whole.mean(), 9);
      }),
    );
  });
});
