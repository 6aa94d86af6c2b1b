import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OperationRecord, type Timing } from "../../../src/metrics/recording/operation-record.ts";
import { Telemetry } from "../../../src/metrics/recording/telemetry.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

function call(record: OperationRecord, now: number): Timing | undefined {
  const timing = record.timesNext ? record.begin(now) : undefined;
  record.add();
  return timing;
}

describe("the timed calls", () => {
  it("are all of them while calls are rare", () => {
    const record = new OperationRecord();
    for (let minute = 0; minute < 500; minute++) {
      expect(call(record, minute * 60_000)).toEqual({ startedAt: minute * 60_000, weight: 1 });
    }
  });

  it("are the first 32 within a second, then one in 127", () => {
    const record = new OperationRecord();
    const timed: number[] = [];
    for (let at = 0; at <= 127 * 3; at++) if (call(record, 0) !== undefined) timed.push(at);
    expect(timed).toEqual([...Array.from({ length: 32 }, (_, at) => at), 127, 254, 381]);
  });

  it("are more again once a second has passed", () => {
    const record = new OperationRecord();
    for (let at = 0; at < 127; at++) call(record, 0);
    const timed = Array.from({ length: 40 }, () => call(record, 1_000)?.weight);
    expect(timed[0]).toBe(127 - 32 + 1);
    expect(timed.slice(1, 32)).toEqual(Array.from({ length: 31 }, () => 1));
    expect(timed.slice(32)).toEqual(Array.from({ length: 8 }, () => undefined));
  });

  it("stand for all calls before them, at any rate", () => {
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

  it("weigh one each while concurrent, and later ones make up for it", () => {
    const record = new OperationRecord();
    const weights = Array.from({ length: 20 }, () => record.begin(0).weight);
    expect(weights).toEqual(Array.from({ length: 20 }, () => 1));
    for (let call = 0; call < 30; call++) record.add();
    expect(record.begin(0).weight).toBe(11);
  });

  it("stand for all gets, hits and misses alike", () => {
    const telemetry = new Telemetry(new ManualClock());
    for (let n = 0; n < 1_000; n++) {
      const timing = telemetry.gets.timesNext ? telemetry.begin(telemetry.gets) : undefined;
      if (n % 3 === 0) telemetry.gets.add();
      else telemetry.hit("k");
      if (timing !== undefined) telemetry.time("get", timing);
    }
    const { count } = telemetry.gets.latency;
    expect(count).toBeGreaterThan(1_000 - 127);
    expect(count).toBeLessThanOrEqual(1_000);
  });
});
