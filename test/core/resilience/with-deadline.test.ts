import { describe, expect, it } from "vitest";
import { withDeadline } from "../../../src/core/resilience/with-deadline.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const late = (): never => {
  throw new Error("late");
};

describe("withDeadline", () => {
  it("settles as the work does and leaves no timer behind", async () => {
    const clock = new ManualClock();
    await expect(withDeadline(clock, 100, Promise.resolve(7), late)).resolves.toBe(7);
    await expect(withDeadline(clock, 100, Promise.reject(new Error("own")), late)).rejects.toThrow("own");
    expect(clock.pending).toBe(0);
  });

  it("rejects at the limit while the work hangs", async () => {
    const clock = new ManualClock();
    const result = withDeadline(clock, 100, new Promise(() => {}), late);
    const seen = expect(result).rejects.toThrow("late");
    await clock.advance(100);
    await seen;
  });

  it("resolves with what `late` returns", async () => {
    const clock = new ManualClock();
    const result = withDeadline(clock, 100, new Promise(() => {}), () => "instead");
    await clock.advance(100);
    await expect(result).resolves.toBe("instead");
  });

  it("ignores what the work does after the limit, even a rejection", async () => {
    const clock = new ManualClock();
    let fail: (error: Error) => void = () => {};
    const work = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const result = withDeadline(clock, 100, work, () => "late");
    await clock.advance(100);
    fail(new Error("too late to matter"));
    await expect(result).resolves.toBe("late");
  });

  it("leaves time after a suspension for the work that had to wait", async () => {
    const clock = new ManualClock();
    let isSuspended = true;
    const options = { isSuspended: () => isSuspended };
    let outcome = "open";
    const result = withDeadline(clock, 100, new Promise(() => {}), () => "late", options);
    void result.then((value) => {
      outcome = value as string;
    });
    await clock.advance(160);
    isSuspended = false;
    // Suspended for between 50 and 75 ms: as long again.
    await clock.advance(60);
    expect(outcome).toBe("open");
    await clock.advance(50);
    expect(outcome).toBe("late");
    expect(clock.pending).toBe(0);
  });

  it("adds nothing when there is no limit", () => {
    const clock = new ManualClock();
    const work = Promise.resolve(1);
    expect(withDeadline(clock, Number.POSITIVE_INFINITY, work, late)).toBe(work);
    expect(clock.pending).toBe(0);
  });
});
