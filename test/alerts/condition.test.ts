import { describe, expect, it } from "vitest";
import { Condition, type ConditionOptions } from "../../src/alerts/condition.ts";

/** What is told at each look, 30 seconds apart. */
function told(terms: Partial<ConditionOptions>, looks: readonly (boolean | undefined)[]) {
  const condition = new Condition({ forMs: 0, repeatMs: Number.POSITIVE_INFINITY, ...terms });
  return looks.map((holds, at) => condition.evaluate(holds, at * 30_000) ?? condition.status);
}

describe("a condition", () => {
  it("fires when it begins to hold, not at every look, and is resolved once", () => {
    expect(told({}, [false, true, true, true, false, false])).toEqual([
      "inactive",
      "fired",
      "firing",
      "firing",
      "resolved",
      "inactive",
    ]);
  });

  it("fires at the very first look if it holds then", () => {
    expect(told({}, [true])).toEqual(["fired"]);
  });

  it("fires anew after it was resolved", () => {
    expect(told({}, [true, false, true, false])).toEqual(["fired", "resolved", "fired", "resolved"]);
  });

  it("must have held for the whole of `for`, and begins to count anew after a break", () => {
    expect(told({ forMs: 60_000 }, [true, true, false, true, true, true])).toEqual([
      "pending",
      "pending",
      "inactive",
      "pending",
      "pending",
      "fired",
    ]);
  });

  it("that never held long enough is not resolved either", () => {
    expect(told({ forMs: 60_000 }, [true, false])).toEqual(["pending", "inactive"]);
  });

  it("is repeated every repeatInterval while it goes on", () => {
    expect(told({ repeatMs: 60_000 }, [true, true, true, true, true, false])).toEqual([
      "fired",
      "firing",
      "repeated",
      "firing",
      "repeated",
      "resolved",
    ]);
  });

  it("counts its repeats from every firing anew", () => {
    const condition = new Condition({ forMs: 30_000, repeatMs: 30_000 });
    for (const at of [0, 30_000, 60_000]) condition.evaluate(true, at);
    expect(condition.repeats).toBe(1);
    expect(condition.evaluate(false, 90_000)).toBe("resolved");
    expect(condition.repeats).toBe(1);
    for (const at of [120_000, 150_000]) condition.evaluate(true, at);
    expect(condition.repeats).toBe(0);
  });

  it("without data neither fires nor is resolved nor repeated", () => {
    expect(told({ repeatMs: 30_000 }, [undefined, true, undefined, undefined, true, undefined])).toEqual([
      "inactive",
      "fired",
      "firing",
      "firing",
      "repeated",
      "firing",
    ]);
  });

  it("bridges looks without data, as long as they are not longer than `for`", () => {
    expect(told({ forMs: 60_000 }, [true, undefined, true])).toEqual(["pending", "pending", "fired"]);
    expect(told({ forMs: 60_000 }, [true, undefined, undefined, true])).toEqual([
      "pending",
      "pending",
      "pending",
      "fired",
    ]);
  });

  it("begins to count `for` anew after longer without data, and never fires without it", () => {
    expect(told({ forMs: 60_000 }, [true, undefined, undefined, undefined, true, true, true])).toEqual([
      "pending",
      "pending",
      "pending",
      "inactive",
      "pending",
      "pending",
      "fired",
    ]);
  });

  it("does not wait for another look because a timer ran a moment early", () => {
    const condition = new Condition({ forMs: 60_000, repeatMs: 60_000 });
    condition.evaluate(true, 0.6);
    expect(condition.evaluate(true, 60_000)).toBe("fired");
    expect(condition.evaluate(true, 119_999.2)).toBe("repeated");
  });
});
