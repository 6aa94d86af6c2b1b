import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Clock, COARSE_LAG_MS, systemClock } from "../../src/core/clock.ts";

const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

describe("after", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each([0, 1, 1_500, LONGEST_TIMEOUT_MS])("runs once after %i ms and not before", (delayMs) => {
    const run = vi.fn();
    systemClock.after(delayMs, run);
    if (delayMs > 0) {
      vi.advanceTimersByTime(delayMs - 1);
      expect(run).not.toHaveBeenCalled();
    }
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(LONGEST_TIMEOUT_MS);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it.each([LONGEST_TIMEOUT_MS + 1, 2 ** 32 + 7, 5 * 2 ** 31])(
    "a delay of %i ms, longer than a Node timer can be, does not fire early",
    (delayMs) => {
      const run = vi.fn();
      systemClock.after(delayMs, run);
      vi.advanceTimersByTime(1);
      expect(run).not.toHaveBeenCalled();
      vi.advanceTimersByTime(delayMs - 2);
      expect(run).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(run).toHaveBeenCalledTimes(1);
    },
  );

  it("Infinity never runs and needs no timer", () => {
    const run = vi.fn();
    const timer = systemClock.after(Number.POSITIVE_INFINITY, run);
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(2 ** 40);
    expect(run).not.toHaveBeenCalled();
    timer.cancel();
  });

  it("a negative delay runs as soon as possible", () => {
    const run = vi.fn();
    systemClock.after(-5, run);
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it("cancel ends it at any step, and does nothing afterwards", () => {
    const run = vi.fn();
    const short = systemClock.after(100, run);
    const long = systemClock.after(3 * 2 ** 31, run);
    vi.advanceTimersByTime(50);
    short.cancel();
    vi.advanceTimersByTime(2 ** 31);
    long.cancel();
    long.cancel();
    vi.advanceTimersByTime(2 ** 33);
    expect(run).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("timers of the clock", () => {
  it("never keep the process alive", () => {
    const before = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    const timers = [systemClock.after(60_000, () => {}), systemClock.after(2 ** 40, () => {})];
    systemClock.coarse();
    expect(process.getActiveResourcesInfo().filter((name) => name === "Timeout")).toHaveLength(before);
    for (const timer of timers) timer.cancel();
  });
});

describe("now", () => {
  it("is the time since the epoch, to fractions of a millisecond, and never runs backwards", () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(60_000);
    let last = systemClock.now();
    for (let n = 0; n < 10_000; n++) {
      const now = systemClock.now();
      expect(now >= last).toBe(true);
      last = now;
    }
  });

  it("does not follow a step of the wall clock", () => {
    const before = systemClock.now();
    vi.spyOn(Date, "now").mockReturnValue(0);
    expect(systemClock.now()).toBeGreaterThanOrEqual(before);
    vi.restoreAllMocks();
  });
});

describe("wall", () => {
  it("follows every step of the wall clock", () => {
    vi.spyOn(Date, "now").mockReturnValue(5);
    expect(systemClock.wall?.()).toBe(5);
    vi.restoreAllMocks();
  });
});

/** A separate clock for every test of a block, which has not read real time yet. */
function freshClock(): () => Clock {
  let clock: Clock;
  beforeEach(async () => {
    vi.useFakeTimers();
    vi.resetModules();
    clock = (await import("../../src/core/clock.ts")).systemClock;
  });
  afterEach(() => void vi.useRealTimers());
  return () => clock;
}

describe.each([
  ["coarse", (clock: Clock) => clock.now(), (clock: Clock) => clock.coarse()],
  ["coarseWall", (clock: Clock) => clock.wall!(), (clock: Clock) => clock.coarseWall!()],
])("%s", (_, exact, coarse) => {
  const clock = freshClock();
  const lag = (): number => exact(clock()) - coarse(clock());

  it("never lags by more than its bound, whenever it is read", () => {
    for (const pauseMs of [
      1, 200, 499, 500, 501, 999, 1_000, 1_001, 5_000, 60_000, 3, 3, 3, 600, 3_600_000,
    ]) {
      vi.advanceTimersByTime(pauseMs);
      expect(lag()).toBeGreaterThanOrEqual(0);
      expect(lag()).toBeLessThanOrEqual(COARSE_LAG_MS);
    }
  });

  it("never runs backwards", () => {
    let last = coarse(clock());
    for (let n = 0; n < 500; n++) {
      vi.advanceTimersByTime((n * 37) % 1_300);
      const reading = coarse(clock());
      expect(reading).toBeGreaterThanOrEqual(last);
      last = reading;
    }
  });

  it("keeps one timer while it is being read, and none afterwards", () => {
    expect(vi.getTimerCount()).toBe(0);
    for (let n = 0; n < 100; n++) coarse(clock());
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(10 * COARSE_LAG_MS);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("coarseWall", () => {
  const clock = freshClock();

  it("follows a step of the wall clock, forwards and back, within its lag", () => {
    clock().coarseWall?.();
    for (const time of [Date.UTC(2040), Date.UTC(2020)]) {
      vi.setSystemTime(time);
      vi.advanceTimersByTime(COARSE_LAG_MS / 2);
      expect(clock().coarseWall?.()).toBe(time + COARSE_LAG_MS / 2);
    }
  });

  it("follows a step after a few readings while no timer can run", () => {
    clock().coarseWall?.();
    vi.setSystemTime(Date.UTC(2040));
    const readings = Array.from({ length: clock().hitsPerReading! }, () => clock().coarseWall?.());
    expect(readings.at(-1)).toBe(Date.UTC(2040));
  });
});

describe("token", () => {
  it("is 8 one-byte characters, and never repeats", () => {
    const tokens = Array.from({ length: 20_000 }, () => systemClock.token());
    expect(new Set(tokens).size).toBe(tokens.length);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: any byte may occur
    expect(tokens.every((token) => /^[\u0000-\u00ff]{8}$/.test(token))).toBe(true);
  });

  it("uses all 64 bits", () => {
    const seen = Array.from({ length: 8 }, () => new Set<number>());
    for (let n = 0; n < 5_000; n++) {
      const token = systemClock.token();
      for (let at = 0; at < 8; at++) seen[at]?.add(token.charCodeAt(at));
    }
    for (const bytes of seen) expect(bytes.size).toBe(256);
  });
});

describe("random", () => {
  it("is a number from 0 up to, but not including, 1", () => {
    for (let n = 0; n < 1_000; n++) {
      const number = systemClock.random();
      expect(number >= 0 && number < 1).toBe(true);
    }
  });
});
