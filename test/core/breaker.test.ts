import { describe, expect, it } from "vitest";
import { type BreakerState, CircuitBreaker } from "../../src/core/breaker.ts";
import { CircuitOpenError } from "../../src/core/errors.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

function open(threshold = 3, resetTimeout = 30) {
  const clock = new ManualClock();
  const states: BreakerState[] = [];
  const breaker = new CircuitBreaker({ failureThreshold: threshold, resetTimeout }, clock, (s) =>
    states.push(s),
  );
  const failTimes = (times: number): void => {
    for (let n = 0; n < times; n++) breaker.fail(breaker.enter("get"));
  };
  return { clock, states, breaker, failTimes };
}

describe("circuit breaker", () => {
  it("opens after the configured number of failures in a row", () => {
    const { breaker, failTimes } = open(3);
    failTimes(2);
    expect(breaker.state).toBe("closed");
    failTimes(1);
    expect(breaker.state).toBe("open");
    expect(() => breaker.enter("get")).toThrow(CircuitOpenError);
  });

  it("starts counting again after a success", () => {
    const { breaker, failTimes } = open(3);
    failTimes(2);
    breaker.succeed(breaker.enter("get"));
    failTimes(2);
    expect(breaker.state).toBe("closed");
  });

  it("names the operation and the time of the next probe while open", () => {
    const { breaker, failTimes, clock } = open(1, 30);
    failTimes(1);
    expect(breaker.openedAt).toBe(clock.now());
    expect(breaker.nextProbeAt).toBe(clock.now() + 30_000);
    expect(() => breaker.enter("set")).toThrow(/next probe in 30\.0 s/);
    expect(() => breaker.enter("set")).toThrow(
      expect.objectContaining({ operation: "set", retryable: true }),
    );
  });

  it("lets exactly one probe through when half open", async () => {
    const { breaker, failTimes, clock } = open(1, 30);
    failTimes(1);
    await clock.advance(30_000);
    const probe = breaker.enter("get");
    expect(probe.probe).toBe(true);
    expect(breaker.state).toBe("half_open");
    for (let n = 0; n < 5; n++) expect(() => breaker.enter("get")).toThrow(/its probe is still in flight/);
  });

  it("closes when the probe succeeds and opens again when it fails", async () => {
    const { breaker, failTimes, clock, states } = open(1, 30);
    failTimes(1);
    await clock.advance(30_000);
    breaker.fail(breaker.enter("get"));
    expect(breaker.state).toBe("open");
    expect(breaker.nextProbeAt).toBe(clock.now() + 30_000);
    await clock.advance(30_000);
    breaker.succeed(breaker.enter("get"));
    expect(breaker.state).toBe("closed");
    expect(breaker.openedAt).toBeUndefined();
    expect(states).toEqual(["open", "half_open", "open", "half_open", "closed"]);
  });

  it("ignores outcomes of calls that began before the state changed", async () => {
    const { breaker, failTimes, clock } = open(2, 30);
    const early = breaker.enter("get");
    failTimes(2);
    breaker.succeed(early);
    expect(breaker.state).toBe("open");
    await clock.advance(30_000);
    const probe = breaker.enter("get");
    breaker.fail(early);
    expect(breaker.state).toBe("half_open");
    breaker.succeed(probe);
    expect(breaker.state).toBe("closed");
  });

  it("counts calls that fail because of one lost connection as one failure", async () => {
    const { breaker, clock } = open(2);
    for (let call = 0; call < 100; call++) breaker.fail(breaker.enter("get"), "loss");
    expect(breaker.failures).toBe(1);
    await clock.advance(100);
    breaker.fail(breaker.enter("get"), "loss");
    expect(breaker.state).toBe("open");
  });

  it("counts calls that wait for a lost connection to be replaced as part of the same failure", async () => {
    const { breaker, clock } = open(2);
    breaker.fail(breaker.enter("get"), "loss");
    await clock.advance(1_000);
    for (let call = 0; call < 100; call++) breaker.fail(breaker.enter("get"), "wait");
    expect(breaker.failures).toBe(1);
    breaker.succeed(breaker.enter("get"));
    for (let call = 0; call < 100; call++) breaker.fail(breaker.enter("get"), "wait");
    expect(breaker.failures).toBe(1);
  });

  it("counts calls that waited for one connection attempt as one failure, and later calls as further failures", () => {
    const { breaker } = open(3);
    const passes = Array.from({ length: 100 }, () => breaker.enter("get"));
    for (const pass of passes) breaker.fail(pass, "attempt");
    expect(breaker.failures).toBe(1);
    breaker.fail(breaker.enter("get"), "attempt");
    breaker.fail(breaker.enter("get"), "attempt");
    expect(breaker.state).toBe("open");
  });

  it("closes at once when a connection is established", async () => {
    const { breaker, failTimes, clock, states } = open(2);
    failTimes(2);
    breaker.connected();
    expect(breaker.state).toBe("closed");
    breaker.succeed(breaker.enter("get"));
    failTimes(2);
    await clock.advance(30_000);
    const probe = breaker.enter("get");
    breaker.connected();
    breaker.fail(probe);
    expect(states).toEqual(["open", "closed", "open", "half_open", "closed"]);
    expect(breaker.openedAt).toBeUndefined();
  });

  it("stays open if connections are established and no call succeeds", async () => {
    const { breaker, failTimes, clock } = open(2, 30);
    failTimes(2);
    breaker.connected();
    failTimes(2);
    breaker.connected();
    expect(breaker.state).toBe("open");
    await clock.advance(30_000);
    breaker.succeed(breaker.enter("get"));
    failTimes(2);
    breaker.connected();
    expect(breaker.state).toBe("closed");
  });
});
