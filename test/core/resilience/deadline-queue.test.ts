import { describe, expect, it } from "vitest";
import { Deadline, DeadlineQueue } from "../../../src/core/resilience/deadline-queue.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

class Watched extends Deadline {
  readonly missed: () => void;
  constructor(deadlines: DeadlineQueue, missed: () => void) {
    super(deadlines);
    this.missed = missed;
  }
}

function set(deadlines: DeadlineQueue, missed: () => void): Deadline {
  const deadline = new Watched(deadlines, missed);
  deadlines.add(deadline);
  return deadline;
}

describe("many deadlines of one length", () => {
  it("expire in order, each at its time, with one timer", async () => {
    const clock = new ManualClock();
    const deadlines = new DeadlineQueue(clock, 100);
    const missed: string[] = [];
    set(deadlines, () => missed.push("a"));
    await clock.advance(40);
    set(deadlines, () => missed.push("b"));
    expect(clock.pending).toBe(1);
    await clock.advance(59);
    expect(missed).toEqual([]);
    await clock.advance(1);
    expect(missed).toEqual(["a"]);
    await clock.advance(40);
    expect(missed).toEqual(["a", "b"]);
    expect(clock.pending).toBe(0);
  });

  it("never expire once met, in whatever order they are met", async () => {
    const clock = new ManualClock();
    const deadlines = new DeadlineQueue(clock, 100);
    const missed: number[] = [];
    const all = Array.from({ length: 50 }, (_, at) => set(deadlines, () => missed.push(at)));
    for (const at of [49, 0, 25, 1, 2, 48]) all[at]?.meet();
    await clock.advance(100);
    expect(missed).toHaveLength(44);
    expect(all.every(({ isOver }) => isOver)).toBe(true);
  });

  it("leave no timer once the queue is idle and the last one is met", async () => {
    const clock = new ManualClock();
    const deadlines = new DeadlineQueue(clock, 100);
    const [one, other] = [set(deadlines, () => {}), set(deadlines, () => {})];
    await clock.advance(1);
    one.meet();
    deadlines.rest();
    expect(clock.pending).toBe(1);
    other.meet();
    expect(clock.pending).toBe(0);
    set(deadlines, () => {}).meet();
    await clock.advance(1);
    expect(clock.pending).toBe(0);
    deadlines.resume();
    const missed: string[] = [];
    set(deadlines, () => missed.push("later"));
    await clock.advance(100);
    expect(missed).toEqual(["later"]);
  });

  it("leave time after a suspension for what is asked afterwards", async () => {
    const clock = new ManualClock();
    let isSuspended = true;
    const deadlines = new DeadlineQueue(clock, 100, () => isSuspended);
    const missed: string[] = [];
    set(deadlines, () => missed.push("a"));
    await clock.advance(160);
    isSuspended = false;
    // Suspended for between 50 and 75 ms: as long again.
    await clock.advance(70);
    expect(missed).toEqual([]);
    await clock.advance(40);
    expect(missed).toEqual(["a"]);
    set(deadlines, () => missed.push("b"));
    await clock.advance(100);
    expect(missed).toEqual(["a", "b"]);
  });

  it("can be set by the callback of an expired one", async () => {
    const clock = new ManualClock();
    const deadlines = new DeadlineQueue(clock, 100);
    const missed: string[] = [];
    set(deadlines, () => {
      missed.push("first");
      set(deadlines, () => missed.push("second"));
    });
    await clock.advance(100);
    await clock.advance(100);
    expect(missed).toEqual(["first", "second"]);
  });

  it("never expire when infinite", async () => {
    const clock = new ManualClock();
    const deadlines = new DeadlineQueue(clock, Number.POSITIVE_INFINITY);
    const deadline = set(deadlines, () => expect.unreachable());
    await clock.advance(1e12);
    expect([deadline.isOver, clock.pending]).toEqual([false, 0]);
  });
});
