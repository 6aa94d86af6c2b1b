import { describe, expect, it } from "vitest";
import {
  CircuitOpenError,
  ConnectionError,
  InvalidKeyError,
  OperationTimeoutError,
} from "../../../src/core/errors.ts";
import type { OperationRecord } from "../../../src/metrics/recording/operation-record.ts";
import { Recorder } from "../../../src/metrics/recording/recorder.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const FACTS = { circuitBreakerOpen: false, poolUtilization: 0, memoryUsage: 0 };

function recorderAt(): { recorder: Recorder; clock: ManualClock } {
  const clock = new ManualClock();
  return { recorder: new Recorder(clock), clock };
}

function addCalls(record: OperationRecord, calls: number): void {
  for (let call = 0; call < calls; call++) record.add();
}

describe("hit rate", () => {
  it("is the share of hits in all lookups, and 0 before the first", () => {
    const { recorder } = recorderAt();
    expect(recorder.hitRate()).toBe(0);
    recorder.hits = 3;
    recorder.misses = 1;
    expect(recorder.hitRate()).toBe(0.75);
  });
});

describe("rates", () => {
  it("are the lifetime average before collection has started", async () => {
    const { recorder, clock } = recorderAt();
    addCalls(recorder.operation("get"), 100);
    recorder.evictions = 20;
    await clock.advance(50_000);
    expect(recorder.comprehensive(FACTS)).toMatchObject({ operationsPerSecond: 2, evictionRate: 0.4 });
  });

  it("cover about the last minute while collecting", async () => {
    const { recorder, clock } = recorderAt();
    addCalls(recorder.operation("get"), 1_000_000);
    await clock.advance(3_600_000);
    recorder.start();
    for (let second = 0; second < 120; second++) {
      addCalls(recorder.operation("get"), 5);
      recorder.evictions += 2;
      await clock.advance(1_000);
      const { operationsPerSecond, evictionRate } = recorder.comprehensive(FACTS);
      expect(operationsPerSecond).toBeCloseTo(5, 6);
      expect(evictionRate).toBeCloseTo(2, 6);
    }
    await clock.advance(30_000);
    const half = recorder.comprehensive(FACTS).operationsPerSecond;
    expect(half).toBeGreaterThan(2);
    expect(half).toBeLessThan(3.1);
    await clock.advance(60_000);
    expect(recorder.comprehensive(FACTS).operationsPerSecond).toBe(0);
    recorder.stop();
  });

  it("cover about the last minute while collecting, as do hit rate, error rate and response times", async () => {
    const { recorder, clock } = recorderAt();
    recorder.hits = 1_000_000;
    addCalls(recorder.operation("get"), 1_000_000);
    for (let n = 0; n < 1_000; n++) recorder.operation("get").latency.add(0.0001);
    recorder.start();
    await clock.advance(1_000);
    // Nothing has happened since, so the figures are the earlier ones.
    expect(recorder.comprehensive(FACTS)).toMatchObject({ hitRate: 1, errorRate: 0 });
    recorder.misses = 3;
    recorder.hits += 1;
    addCalls(recorder.operation("get"), 4);
    recorder.failed("get", new Error("no"));
    recorder.operation("get").latency.add(0.2);
    const metrics = recorder.comprehensive(FACTS);
    expect(metrics).toMatchObject({ hitRate: 0.25, errorRate: 0.25, totalOperations: 1_000_004 });
    expect(metrics.avgResponseTime).toBeCloseTo(0.2, 6);
    expect(metrics.p50).toBeGreaterThan(0.1);
    await clock.advance(120_000);
    recorder.hits += 4;
    addCalls(recorder.operation("get"), 4);
    expect(recorder.comprehensive(FACTS)).toMatchObject({ hitRate: 1, errorRate: 0 });
    recorder.stop();
  });

  it("cover the last minute without collection too, if they are read repeatedly", async () => {
    const { recorder, clock } = recorderAt();
    const get = recorder.operation("get");
    recorder.misses = 1_000_000;
    addCalls(get, 1_000_000);
    for (let n = 0; n < 500_000; n++) recorder.errors++;
    await clock.advance(3_600_000);
    for (let second = 0; second < 130; second++) {
      if (second % 10 === 0) recorder.comprehensive(FACTS);
      addCalls(get, 100);
      recorder.hits += 100;
      if (second % 2 === 0) recorder.failed("get", new Error("no"));
      await clock.advance(1_000);
    }
    const metrics = recorder.comprehensive(FACTS);
    expect(metrics).toMatchObject({ hitRate: 1, operationsPerSecond: 100 });
    expect(metrics.errorRate).toBeCloseTo(0.005, 6);
  });

  it("cover the time since the previous reading without collection, if that is over a minute ago", async () => {
    const { recorder, clock } = recorderAt();
    const get = recorder.operation("get");
    addCalls(get, 1_000_000);
    await clock.advance(3_600_000);
    recorder.comprehensive(FACTS);
    await clock.advance(59_000);
    expect(recorder.comprehensive(FACTS).operationsPerSecond).toBeGreaterThan(200);
    addCalls(get, 300);
    await clock.advance(241_000);
    expect(recorder.comprehensive(FACTS).operationsPerSecond).toBeCloseTo(300 / 241, 6);
  });

  it("cover the time since collection has started, however often they were read before", async () => {
    const { recorder, clock } = recorderAt();
    const get = recorder.operation("get");
    for (let second = 0; second < 120; second++) {
      addCalls(get, 1_000);
      recorder.comprehensive(FACTS);
      await clock.advance(1_000);
    }
    recorder.start();
    addCalls(get, 20);
    await clock.advance(10_000);
    expect(recorder.comprehensive(FACTS).operationsPerSecond).toBe(2);
    recorder.stop();
  });

  it("are finite at the very moment of the start", () => {
    const { recorder } = recorderAt();
    addCalls(recorder.operation("get"), 5);
    expect(Number.isFinite(recorder.comprehensive(FACTS).operationsPerSecond)).toBe(true);
  });

  it("use one timer if started twice, none when stopped, and can be started again", async () => {
    const { recorder, clock } = recorderAt();
    recorder.start();
    recorder.start();
    expect(clock.pending).toBe(1);
    await clock.advance(25_000);
    expect(clock.pending).toBe(1);
    recorder.stop();
    recorder.stop();
    expect(clock.pending).toBe(0);
    recorder.start();
    addCalls(recorder.operation("get"), 30);
    await clock.advance(10_000);
    expect(recorder.comprehensive(FACTS).operationsPerSecond).toBe(3);
    recorder.stop();
  });
});

describe("errors", () => {
  it("are counted in total and by operation; connection errors also separately", () => {
    const { recorder } = recorderAt();
    addCalls(recorder.operation("get"), 8);
    recorder.failed("get", new InvalidKeyError("bad"));
    recorder.failed("get", new ConnectionError("lost"));
    recorder.failed("set", new OperationTimeoutError("late"));
    recorder.failed("set", new Error("other"));
    const metrics = recorder.comprehensive(FACTS);
    expect(metrics).toMatchObject({ errorRate: 0.5, connectionFailures: 2 });
    expect(metrics.byOperation.get).toMatchObject({ count: 8, errors: 2 });
    expect(metrics.byOperation.set).toMatchObject({ count: 0, errors: 2 });
  });

  it("count as failed connections only if the store is unreachable or does not answer", () => {
    const { recorder } = recorderAt();
    recorder.failed("getOrSet", new OperationTimeoutError("slow load", { code: "LOAD_TIMEOUT" }));
    recorder.failed("get", new ConnectionError("closed", { code: "DISCONNECTED" }));
    recorder.failed("get", new CircuitOpenError("open"));
    recorder.failed("get", Object.assign(new Error("of a load"), { errorType: "timeout" }));
    expect(recorder.comprehensive(FACTS).connectionFailures).toBe(0);
    recorder.failed("get", new OperationTimeoutError("no answer"));
    recorder.failed("get", new ConnectionError("refused"));
    expect(recorder.comprehensive(FACTS).connectionFailures).toBe(2);
    expect(recorder.errors).toBe(6);
  });

  it("have a rate of 0 before the first operation, and never above 1", () => {
    const { recorder } = recorderAt();
    expect(recorder.comprehensive(FACTS).errorRate).toBe(0);
    addCalls(recorder.operation("get"), 1);
    for (let n = 0; n < 3; n++) recorder.failed("background", new Error("no"));
    expect(recorder.comprehensive(FACTS).errorRate).toBe(1);
  });
});

describe("the error rate of an idle cache", () => {
  it.each([
    ["while collecting", true],
    ["without collection", false],
  ])("is 0 a minute after the last failure, %s", async (_, collects) => {
    const { recorder, clock } = recorderAt();
    if (collects) recorder.start();
    addCalls(recorder.operation("get"), 10);
    for (let n = 0; n < 5; n++) recorder.failed("get", new Error("no"));
    const rate = (): number => recorder.comprehensive(FACTS).errorRate;
    expect(rate()).toBe(0.5);
    await clock.advance(59_999);
    expect(rate()).toBe(0.5);
    await clock.advance(1);
    expect(rate()).toBe(0);
    await clock.advance(3_600_000);
    expect(rate()).toBe(0);
    addCalls(recorder.operation("get"), 4);
    recorder.failed("get", new Error("no"));
    expect(rate()).toBe(0.25);
    recorder.stop();
  });

  it("is 0 at the first reading, if nothing failed in the minute before it", async () => {
    const { recorder, clock } = recorderAt();
    addCalls(recorder.operation("get"), 10);
    recorder.failed("get", new Error("no"));
    await clock.advance(60_000);
    expect(recorder.comprehensive(FACTS).errorRate).toBe(0);
  });

  it("is 0 if only background work failed", async () => {
    const { recorder, clock } = recorderAt();
    addCalls(recorder.operation("get"), 10);
    recorder.start();
    await clock.advance(60_000);
    recorder.failed("background", new Error("no"));
    expect(recorder.comprehensive(FACTS).errorRate).toBe(0);
    recorder.stop();
  });
});

describe("latencies", () => {
  it("are reported by operation, and for all together by weight", () => {
    const { recorder } = recorderAt();
    for (let n = 0; n < 99; n++) recorder.operation("get").latency.add(0.0004);
    recorder.operation("set").latency.add(3);
    const { byOperation, p50, p99, avgResponseTime } = recorder.comprehensive(FACTS);
    expect(byOperation.get?.p99).toBeLessThanOrEqual(0.0005);
    expect(byOperation.set?.p50).toBeGreaterThan(2.5);
    expect(p50).toBeLessThanOrEqual(0.0005);
    expect(p99).toBeLessThanOrEqual(0.0005);
    expect(avgResponseTime).toBeCloseTo((99 * 0.0004 + 3) / 100);
  });
});

describe("stats", () => {
  it("passes on the store's figures for keys and bytes", async () => {
    const { recorder, clock } = recorderAt();
    await clock.advance(1_500);
    const stats = recorder.stats({ keys: 7, bytes: 3 * 1024 * 1024, approximate: true });
    expect(stats).toMatchObject({
      totalKeys: 7,
      totalMemoryBytes: 3_145_728,
      memoryUsageMb: 3,
      approximate: true,
      uptimeSeconds: 1.5,
    });
  });
});
