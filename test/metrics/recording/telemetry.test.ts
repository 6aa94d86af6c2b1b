import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../../src/core/errors.ts";
import type { Namespace } from "../../../src/core/namespace.ts";
import { Telemetry } from "../../../src/metrics/recording/telemetry.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const FACTS = { circuitBreakerOpen: false, poolUtilization: 0, memoryUsage: 0 };

describe("timing", () => {
  it("times the first call and then few, and any regular pattern of calls evenly", () => {
    const telemetry = new Telemetry(new ManualClock());
    expect(telemetry.start("set")).toBeDefined();
    for (const period of [2, 3, 4, 8, 16, 32, 64, 100]) {
      const timed = new Array<number>(period).fill(0);
      for (let call = 0; call < period * 1_000; call++) {
        if (telemetry.start("set") !== undefined) timed[call % period] = (timed[call % period] as number) + 1;
        telemetry.finish("set", undefined);
      }
      const all = timed.reduce((sum, count) => sum + count, 0);
      expect(all).toBeLessThan(period * 50);
      expect(Math.min(...timed), `one in ${period} is never timed`).toBeGreaterThan(0);
    }
  });

  it("times the first get and then few, and any regular pattern of hits and misses evenly", () => {
    const telemetry = new Telemetry(new ManualClock());
    expect(telemetry.gets.timesNext).toBe(true);
    for (const period of [2, 3, 4, 8, 16, 32, 64, 100]) {
      const timed = new Array<number>(period).fill(0);
      for (let call = 0; call < period * 1_000; call++) {
        if (telemetry.gets.timesNext) {
          timed[call % period] = (timed[call % period] as number) + 1;
          telemetry.begin(telemetry.gets);
        }
        if (call % period === 0) telemetry.gets.add();
        else telemetry.hit("k");
      }
      const all = timed.reduce((sum, count) => sum + count, 0);
      expect(all).toBeLessThan(period * 50);
      expect(Math.min(...timed), `one in ${period} is never timed`).toBeGreaterThan(0);
    }
  });

  it("counts successes and failures in run, and passes on both", async () => {
    const clock = new ManualClock();
    const telemetry = new Telemetry(clock);
    const failure = new ConnectionError("lost");
    expect(await telemetry.run("clear", () => 5)).toBe(5);
    await expect(
      telemetry.run("clear", () => {
        throw failure;
      }),
    ).rejects.toBe(failure);
    await expect(telemetry.run("clear", () => Promise.reject("text"))).rejects.toMatchObject({
      cause: "text",
    });
    expect(telemetry.recorder.comprehensive(FACTS).byOperation.clear).toMatchObject({ count: 3, errors: 2 });
  });

  it("measures a timed call by the clock", async () => {
    const clock = new ManualClock();
    const telemetry = new Telemetry(clock);
    const call = telemetry.run("clear", () => new Promise<void>((resolve) => clock.after(250, resolve)));
    await clock.advance(250);
    await call;
    expect(telemetry.recorder.comprehensive(FACTS).byOperation.clear?.avgResponseTime).toBe(0.25);
  });
});

describe("what the store reports", () => {
  it("is passed on: its own evictions, every background failure, every state of the breaker", () => {
    const telemetry = new Telemetry(new ManualClock());
    const heard: unknown[] = [];
    for (const event of ["evict", "error", "state"] as const)
      telemetry.events.add(event, (e) => heard.push(e));
    const [mine, other] = [{} as Namespace, {} as Namespace];
    const observer = telemetry.observer(mine);
    const failure = new Error("lost");
    observer.evicted(other, "theirs");
    observer.evicted(mine, "mine");
    observer.failed(failure);
    observer.breakerChanged("open");
    expect(heard).toEqual([
      { key: "mine" },
      { error: failure, operation: "background" },
      { what: "circuit_breaker", state: "open" },
    ]);
    expect(telemetry.recorder.evictions).toBe(1);
    expect(telemetry.recorder.errors).toBe(1);
  });
});

describe("deletes", () => {
  it("count the keys that existed, and emit an event for every key given", () => {
    const telemetry = new Telemetry(new ManualClock());
    const deleted: string[] = [];
    telemetry.events.add("delete", ({ key }) => deleted.push(key));
    telemetry.deleted(["a", "b", "c"], 1);
    telemetry.deleted(["d"], 0);
    expect(telemetry.recorder.deletes).toBe(1);
    expect(deleted).toEqual(["a", "b", "c", "d"]);
  });
});

describe("an observer", () => {
  it("names its namespace, so that a store need not call it for others", () => {
    const telemetry = new Telemetry(new ManualClock());
    const space = {} as Namespace;
    expect(telemetry.observer(space).namespace).toBe(space);
  });
});
