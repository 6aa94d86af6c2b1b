import { describe, expect, it } from "vitest";
import { Condition, type ConditionOptions } from "../../src/alerts/condition.ts";

/** The outcome of each check, 30 seconds apart. */
function outcomes(terms: Partial<ConditionOptions>, checks: readonly (boolean | undefined)[]) {
  const condition = new Condition({ forMs: 0, repeatMs: Number.POSITIVE_INFINITY, ...terms });
  return checks.map((holds, at) => condition.evaluate(holds, at * 30_000) ?? condition.status);
}

describe("a condition", () => {
  it("fires when it starts to hold, not at every check, and resolves once", () => {
    expect(outcomes({}, [false, true, true, true, false, false])).toEqual([
      "inactive",
      "fired",
      "firing",
      "firing",
      "resolved",
      "inactive",
    ]);
  });

  it("fires at the very first check if it already holds", () => {
    expect(outcomes({}, [true])).toEqual(["fired"]);
  });

  it("fires again after it has resolved", () => {
    expect(outcomes({}, [true, false, true, false])).toEqual(["fired", "resolved", "fired", "resolved"]);
  });

  it("must hold for the whole of `for`, and starts counting again after a break", () => {
    expect(outcomes({ forMs: 60_000 }, [true, true, false, true, true, true])).toEqual([
      "pending",
      "pending",
      "inactive",
      "pending",
      "pending",
      "fired",
    ]);
  });

  it("does not resolve if it never held long enough to fire", () => {
    expect(outcomes({ forMs: 60_000 }, [true, false])).toEqual(["pending", "inactive"]);
  });

  it("repeats every repeatInterval while it holds", () => {
    expect(outcomes({ repeatMs: 60_000 }, [true, true, true, true, true, false])).toEqual([
      "fired",
      "firing",
      "repeated",
      "firing",
      "repeated",
      "resolved",
    ]);
  });

  it("counts repeats from the latest firing", () => {
    const condition = new Condition({ forMs: 30_000, repeatMs: 30_000 });
    for (const at of [0, 30_000, 60_000]) condition.evaluate(true, at);
    expect(condition.repeats).toBe(1);
    expect(condition.evaluate(false, 90_000)).toBe("resolved");
    expect(condition.repeats).toBe(1);
    for (const at of [120_000, 150_000]) condition.evaluate(true, at);
    expect(condition.repeats).toBe(0);
  });

  it("neither fires, resolves nor repeats without data", () => {
    expect(outcomes({ repeatMs: 30_000 }, [undefined, true, undefined, undefined, true, undefined])).toEqual([
      "inactive",
      "fired",
      "firing",
      "firing",
      "repeated",
      "firing",
    ]);
  });

  it("bridges checks without data for up to `for`", () => {
    expect(outcomes({ forMs: 60_000 }, [true, undefined, true])).toEqual(["pending", "pending", "fired"]);
    expect(outcomes({ forMs: 60_000 }, [true, undefined, undefined, true])).toEqual([
      "pending",
      "pending",
      "pending",
      "fired",
    ]);
  });

  it("restarts `for` after a longer gap in the data, and never fires without data", () => {
    expect(outcomes({ forMs: 60_000 }, [true, undefined, undefined, undefined, true, true, true])).toEqual([
      "pending",
      "pending",
      "pending",
      "inactive",
      "pending",
      "pending",
      "fired",
    ]);
  });

  it("does not wait for another check because a timer ran slightly early", () => {
    const condition = new Condition({ forMs: 60_000, repeatMs: 60_000 });
    condition.evaluate(true, 0.6);
    expect(condition.evaluate(true, 60_000)).toBe("fired");
    expect(condition.evaluate(true, 119_999.2)).toBe("repeated");
  });
});
