import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OperationRecord, type Timing } from "../../src/metrics/operation-record.ts";
import { Telemetry } from "../../src/metrics/telemetry.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

const call = (record: OperationRecord, now: number): Timing | undefined =>
  record.isDue() ? record.begin(now) : undefined;

describe("which calls are timed", () => {
  it("all of those that come seldom", () => {
    const record = new OperationRecord();
    for (let minute = 0; minute < 500; minute++) {
      expect(call(record, minute * 60_000)).toEqual({ startedAt: minute * 60_000, weight: 1 });
    }
  });

  it("of many within a second the first 32, then one in 127", () => {
    const record = new OperationRecord();
    const timed: number[] = [];
    for (let at = 0; at < 32 + 127 * 3; at++) if (call(record, 0) !== undefined) timed.push(at);
    expect(timed).toEqual([...Array.from({ length: 32 }, (_, at) => at), 32 + 126, 32 + 253, 32 + 380]);
  });

  it("more again once a second has passed", () => {
    const record = new OperationRecord();
    for (let at = 0; at < 32 + 126; at++) call(record, 0);
    const timed = Array.from({ length: 40 }, () => call(record, 1_000)?.weight);
    expect(timed[0]).toBe(127);
    expect(timed.slice(1, 32)).toEqual(Array.from({ length: 31 }, () => 1));
    expect(timed.slice(32)).toEqual(Array.from({ length: 8 }, () => undefined));
  });

  it("those that are timed stand for all before them, at any pace", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 400 }), { maxLength: 600 }), (pauses) => {
        const record = new OperationRecord();
        let [now, calls, weights, pending] = [0, 0, 0, 0];
        for (const pause of pauses) {
          now += pause;
          calls++;
          pending++;
          const timing = call(record, now);
          if (timing === undefined) continue;
          expect(timing.weight).toBe(pending);
          weights += timing.weight;
          pending = 0;
        }
        expect(weights + pending).toBe(calls);
      }),
    );
  });

  it("gets that are timed stand for all gets, hits and others alike", () => {
    const telemetry = new Telemetry(new ManualClock());
    for (let n = 0; n < 1_000; n++) {
      const timing = telemetry.timesNextGet ? telemetry.startGet() : undefined;
      if (n % 3 === 0) telemetry.countGet();
      else telemetry.hit("k");
      if (timing !== undefined) telemetry.time("get", timing);
    }
    const { count } = telemetry.gets.latency;
    expect(count).toBeGreaterThan(1_000 - 127);
    expect(count).toBeLessThanOrEqual(1_000);
  });
});
