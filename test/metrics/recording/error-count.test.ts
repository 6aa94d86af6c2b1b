import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../../src/core/errors.ts";
import { ErrorCounts } from "../../../src/metrics/recording/error-count.ts";

const classNamed = (name: string): Error => {
  const { [name]: Named } = { [name]: class extends Error {} };
  return new (Named as new () => Error)();
};

describe("counting errors", () => {
  it("goes by operation, type and class", () => {
    const counts = new ErrorCounts();
    counts.count("get", new ConnectionError("lost"));
    counts.count("get", new ConnectionError("lost again"));
    counts.count("set", new RangeError("far"));
    expect([...counts].map(([, counted]) => counted)).toEqual([
      { tags: { operation: "get", error_type: "connection", error_class: "ConnectionError" }, count: 2 },
      { tags: { operation: "set", error_type: "unknown", error_class: "RangeError" }, count: 1 },
    ]);
  });

  it("of ever new classes stops at a thousand series, and no error is lost", () => {
    const counts = new ErrorCounts();
    for (let at = 0; at < 1_500; at++) counts.count("get", classNamed(`Made${at}`));
    const all = [...counts].map(([, counted]) => counted);
    expect(all).toHaveLength(1_001);
    expect(all.reduce((sum, { count }) => sum + count, 0)).toBe(1_500);
    expect(all.at(-1)).toEqual({
      tags: { operation: "get", error_type: "unknown", error_class: "Error" },
      count: 500,
    });
    counts.count("get", classNamed("Made0"));
    expect(all[0]?.count).toBe(2);
  });

  it("tolerates an error whose class cannot be read", () => {
    const counts = new ErrorCounts();
    const odd = Object.defineProperty(new Error("odd"), "constructor", {
      get() {
        throw new Error("not shown");
      },
    });
    counts.count("get", odd);
    expect([...counts][0]?.[1].tags.error_class).toBe("Error");
  });
});
