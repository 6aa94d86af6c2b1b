import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  type EntryDefaults,
  LoadDecisions,
  resolveLoadOptions,
  resolveSetOptions,
  ttlToMs,
} from "../../src/core/entry-options.ts";

const defaults = (changed: Partial<EntryDefaults> = {}): EntryDefaults => ({
  defaultTtl: 300,
  ttlJitter: 0,
  staleIfError: 0,
  staleWhileRevalidate: 0,
  random: () => {
    throw new Error("no chance was needed");
  },
  ...changed,
});

describe("ttlToMs", () => {
  it("converts whole milliseconds exactly, however their decimal fraction is rounded", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 50 }), (ms) => {
        expect(ttlToMs(ms / 1000)).toBe(ms);
      }),
    );
    expect(ttlToMs(1.001)).toBe(1_001);
    expect(ttlToMs(0.1 + 0.2)).toBe(300);
    expect(ttlToMs(4.35)).toBe(4_350);
  });

  it("rounds finer fractions down", () => {
    expect(ttlToMs(0.0019999)).toBe(1);
    expect(ttlToMs(1.9999)).toBe(1_999);
    expect(ttlToMs(59.9996)).toBe(59_999);
  });

  it("keeps Infinity, and treats anything too large to multiply as Infinity", () => {
    expect(ttlToMs(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
    expect(ttlToMs(Number.MAX_VALUE)).toBe(Number.POSITIVE_INFINITY);
  });

  it("uses the caller's name for the option", () => {
    expect(() => ttlToMs(0, "defaultTtl")).toThrow(/^defaultTtl must be/);
    expect(() => ttlToMs(0)).toThrow(/^ttl must be/);
  });
});

describe("setTerms", () => {
  it("fills in the defaults, for no options and for empty ones", () => {
    expect(resolveSetOptions(undefined, defaults())).toEqual({ ttlMs: 300_000, staleMs: 0, tags: [] });
    expect(resolveSetOptions({}, defaults())).toEqual({ ttlMs: 300_000, staleMs: 0, tags: [] });
  });

  it("keeps no stale window: those belong to getOrSet", () => {
    expect(resolveSetOptions({ ttl: 5 }, defaults({ staleIfError: 60 }))).toEqual({
      ttlMs: 5_000,
      staleMs: 0,
      tags: [],
    });
  });

  it("copies the list of tags", () => {
    for (const tags of [[], ["a"], ["a", "b", "a"]]) {
      const options = resolveSetOptions({ tags }, defaults());
      expect(options.tags).not.toBe(tags);
      expect(options.tags).toEqual([...new Set(tags)]);
    }
  });
});

describe("jitter", () => {
  it("only shortens, by up to its fraction, and never below a millisecond", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.001, max: 1e6, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.double({ min: 0, max: 0.9999999, noNaN: true }),
        (defaultTtl, ttlJitter, chance) => {
          const { ttlMs } = resolveSetOptions({}, defaults({ defaultTtl, ttlJitter, random: () => chance }));
          const whole = ttlToMs(defaultTtl);
          expect(ttlMs).toBeLessThanOrEqual(whole);
          expect(ttlMs).toBeGreaterThanOrEqual(Math.max(1, Math.floor(whole * (1 - ttlJitter))));
          expect(Number.isInteger(ttlMs)).toBe(true);
        },
      ),
    );
  });

  it("is drawn for every default ttl separately, and reaches both ends", () => {
    const random = vi.fn().mockReturnValueOnce(0).mockReturnValueOnce(0.999999);
    const jittered = defaults({ defaultTtl: 100, ttlJitter: 0.5, random });
    expect(resolveSetOptions(undefined, jittered).ttlMs).toBe(100_000);
    expect(resolveSetOptions(undefined, jittered).ttlMs).toBe(50_000);
    expect(random).toHaveBeenCalledTimes(2);
  });

  it("leaves an explicit ttl and an infinite one alone, without drawing a random number", () => {
    const jittered = defaults({ ttlJitter: 0.5 });
    expect(resolveSetOptions({ ttl: 7 }, jittered).ttlMs).toBe(7_000);
    expect(resolveLoadOptions({ ttl: 7 }, jittered).entry.ttlMs).toBe(7_000);
    const forEver = defaults({ defaultTtl: Number.POSITIVE_INFINITY, ttlJitter: 0.5 });
    expect(resolveSetOptions({}, forEver).ttlMs).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("resolveLoadOptions", () => {
  it("defaults to no windows, no timeouts, waiting for others and no force", () => {
    expect(resolveLoadOptions(undefined, defaults())).toEqual({
      entry: { ttlMs: 300_000, staleMs: 0, tags: [] },
      lock: true,
      force: false,
      staleIfErrorMs: 0,
      staleWhileRevalidateMs: 0,
      softTimeoutMs: Number.POSITIVE_INFINITY,
      hardTimeoutMs: Number.POSITIVE_INFINITY,
    });
  });

  it("prefers an option to the configured default, 0 included", () => {
    const configured = defaults({ staleIfError: 60, staleWhileRevalidate: 30 });
    expect(resolveLoadOptions({}, configured)).toMatchObject({
      staleIfErrorMs: 60_000,
      staleWhileRevalidateMs: 30_000,
    });
    expect(resolveLoadOptions({ staleIfError: 0, staleWhileRevalidate: 1 }, configured)).toMatchObject({
      staleIfErrorMs: 0,
      staleWhileRevalidateMs: 1_000,
    });
  });

  it("keeps the old value for the longer of the two windows", () => {
    expect(resolveLoadOptions({ staleIfError: 5, staleWhileRevalidate: 9 }, defaults()).entry.staleMs).toBe(
      9_000,
    );
    expect(resolveLoadOptions({ staleIfError: 5 }, defaults({ staleWhileRevalidate: 2 })).entry.staleMs).toBe(
      5_000,
    );
  });
});

describe("what a load decides", () => {
  const options = { ttlMs: 1_000, staleMs: 500, tags: ["a"] };

  it("the last setTtl wins, tags accumulate, the window stays", () => {
    const decided = new LoadDecisions(options);
    const { setTtl, setTags } = decided.context(undefined, new AbortController().signal);
    setTtl(9);
    setTtl(0.5);
    setTags(["b", "a"]);
    setTags(["c"]);
    expect(decided.options).toEqual({ ttlMs: 500, staleMs: 500, tags: ["a", "b", "c"] });
    expect(options.tags).toEqual(["a"]);
  });

  it("a rejected call changes nothing", () => {
    const decided = new LoadDecisions(options);
    const { setTtl, setTags } = decided.context(undefined, new AbortController().signal);
    expect(() => setTtl(-1)).toThrow();
    expect(() => setTags(["fine", ""])).toThrow();
    expect(decided.options).toEqual(options);
  });

  it("skip is remembered", () => {
    const decided = new LoadDecisions(options);
    expect(decided.skipped).toBe(false);
    decided.context(undefined, new AbortController().signal).skip();
    expect(decided.skipped).toBe(true);
  });
});
