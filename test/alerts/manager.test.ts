import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { AlertDefinition } from "../../src/alerts/definition.ts";
import { AlertManager } from "../../src/alerts/manager.ts";
import type { AlertManagerOptions } from "../../src/alerts/options.ts";
import { AlertDeliveryError } from "../../src/core/errors.ts";
import { cacheWithClock, ManualClock } from "../../src/testing/manual-clock.ts";
import { until } from "../support/until.ts";
import { Figures } from "./figures.ts";
import { answer, Receiver } from "./receiver.ts";

const CHECK_INTERVAL = 30_000;

interface Scene extends AsyncDisposable {
  readonly figures: Figures;
  readonly clock: ManualClock;
  readonly manager: AlertManager;
  readonly receiver: Receiver;
  readonly errors: Error[];
  /** Runs this many checks, until every delivery has been accepted or has failed. */
  check(times?: number): Promise<void>;
  /** What the receiver was sent: `low firing 0`. */
  sent(): readonly string[];
}

async function scene(options: AlertManagerOptions = {}): Promise<Scene> {
  const figures = new Figures();
  const clock = new ManualClock();
  const errors: Error[] = [];
  const onError = (error: Error): void => void errors.push(error);
  const manager = new AlertManager(figures, { onError, instance: "here", ...options }, clock);
  const receiver = await Receiver.start();
  return {
    figures,
    clock,
    manager,
    receiver,
    errors,
    async check(times = 1) {
      for (let time = 0; time < times; time++) {
        await clock.advance(CHECK_INTERVAL);
        await until(() => manager.deliveries().pending === 0, { what: "everything delivered" });
      }
    },
    sent: () =>
      receiver.received.map(({ payload: { data } }) => `${data.name} ${data.status} ${data.repeat}`),
    async [Symbol.asyncDispose]() {
      await manager.stop({ timeout: 0 });
      await receiver[Symbol.asyncDispose]();
    },
  };
}

const low = (receiver: Receiver, changed: Partial<AlertDefinition> = {}): AlertDefinition => ({
  name: "low",
  metric: "hit_rate",
  threshold: 0.7,
  comparison: "less_than",
  webhookUrl: receiver.url,
  ...changed,
});

describe("an alert", () => {
  it("is sent when its metric crosses the threshold and when it resolves, not at every check", async () => {
    await using test = await scene();
    const { figures, manager, receiver, clock } = test;
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.9);
    await test.check();
    expect(test.sent()).toEqual([]);
    for (let check = 0; check < 3; check++) {
      figures.read(10, 0.6);
      await test.check();
    }
    expect(test.sent()).toEqual(["low firing 0"]);
    figures.read(10, 0.8);
    await test.check(2);
    expect(test.sent()).toEqual(["low firing 0", "low resolved 0"]);
    const [fired, resolved] = receiver.received.map(({ payload }) => payload);
    const started = clock.now() - 6 * CHECK_INTERVAL;
    const at = (check: number): string => new Date(started + check * CHECK_INTERVAL).toISOString();
    const incident = fired!.data.incident_id;
    expect(fired).toEqual({
      type: "alert.firing",
      timestamp: at(2),
      data: {
        name: "low",
        status: "firing",
        metric: "hit_rate",
        comparison: "less_than",
        threshold: 0.7,
        value: 0.6,
        since: at(2),
        repeat: 0,
        incident_id: incident,
        instance: "here",
        summary: "hit_rate is less than 0.7 (70 %): it is 0.6 (60 %)",
      },
    });
    expect(resolved).toMatchObject({
      type: "alert.resolved",
      timestamp: at(5),
      data: {
        status: "resolved",
        value: 0.8,
        since: at(2),
        incident_id: incident,
        summary: "hit_rate is no longer less than 0.7 (70 %): it is 0.8 (80 %)",
      },
    });
    expect(receiver.received[0]?.headers["webhook-id"]).toBe(incident);
    expect(receiver.received[1]?.headers["webhook-id"]).not.toBe(incident);
  });

  it("carries wall-clock time, even after the machine slept or its clock was adjusted", async () => {
    await using test = await scene();
    const { manager, receiver, figures, clock } = test;
    let ahead = 3_600_000;
    Object.assign(clock, { wall: () => clock.now() + ahead });
    manager.addAlert(low(receiver, { for: 30, repeatInterval: 30 }));
    manager.start();
    figures.read(10, 0.1);
    await test.check();
    expect(manager.states()[0]?.since).toBe("2026-01-01T01:00:30.000Z");
    figures.read(10, 0.1);
    await test.check();
    ahead = 7_200_000;
    figures.read(10, 0.1);
    await test.check();
    expect(receiver.received.map(({ payload: { timestamp, data } }) => [timestamp, data.since])).toEqual([
      ["2026-01-01T01:01:00.000Z", "2026-01-01T01:00:30.000Z"],
      ["2026-01-01T02:01:30.000Z", "2026-01-01T01:00:30.000Z"],
    ]);
    expect(manager.states()[0]?.since).toBe("2026-01-01T01:00:30.000Z");
  });

  it("with `for` is sent only once it has held that long", async () => {
    await using test = await scene();
    test.manager.addAlert(
      low(test.receiver, { metric: "memory_usage", comparison: "greater_than", for: 60 }),
    );
    test.manager.start();
    test.figures.set({ memoryUsage: 0.9 });
    await test.check(2);
    expect(test.manager.states()).toMatchObject([{ status: "pending", value: 0.9 }]);
    expect(test.sent()).toEqual([]);
    await test.check();
    expect(test.manager.states()).toMatchObject([{ status: "firing" }]);
    expect(test.sent()).toEqual(["low firing 0"]);
  });

  it("is sent again after repeatInterval, its own or the manager's", async () => {
    await using test = await scene({ repeatInterval: 120 });
    const { receiver, manager } = test;
    const always = { metric: "memory_usage", comparison: "greater_or_equal", threshold: 0 } as const;
    manager.addAlert(low(receiver, { ...always, name: "a" }));
    manager.addAlert(low(receiver, { ...always, name: "b", repeatInterval: 60 }));
    manager.addAlert(low(receiver, { ...always, name: "c", repeatInterval: Number.POSITIVE_INFINITY }));
    manager.start();
    await test.check(5);
    expect([...test.sent()].sort()).toEqual([
      "a firing 0",
      "a firing 1",
      "b firing 0",
      "b firing 1",
      "b firing 2",
      "c firing 0",
    ]);
  });

  it("does not fire for a cache that nobody reads, and states why", async () => {
    await using test = await scene();
    test.manager.addAlert(low(test.receiver));
    test.manager.start();
    expect(test.manager.states()).toEqual([
      { name: "low", metric: "hit_rate", status: "inactive", noData: "not checked yet" },
    ]);
    await test.check(3);
    expect(test.sent()).toEqual([]);
    expect(test.manager.states()).toEqual([
      { name: "low", metric: "hit_rate", status: "inactive", noData: "no reads since the last check" },
    ]);
  });

  it("does not resolve because the cache is no longer read", async () => {
    await using test = await scene({ repeatInterval: 30 });
    test.manager.addAlert(low(test.receiver));
    test.manager.start();
    test.figures.read(10, 0.1);
    await test.check(3);
    expect(test.sent()).toEqual(["low firing 0"]);
    test.figures.read(1, 0.1);
    await test.check();
    expect(test.sent()).toEqual(["low firing 0", "low firing 1"]);
  });

  it("is sent to each of its destinations once", async () => {
    await using test = await scene();
    await using second = await Receiver.start();
    const { receiver, figures, manager } = test;
    manager.addAlert(low(receiver, { webhookUrl: [receiver.url, second.url, receiver.url] }));
    manager.start();
    figures.read(10, 0.1);
    await test.check();
    expect([receiver, second].map(({ received }) => received.length)).toEqual([1, 1]);
    expect(receiver.received[0]?.body).toBe(second.received[0]?.body);
  });

  it("is evaluated independently of the others", async () => {
    await using test = await scene();
    const { manager, receiver, figures } = test;
    manager.addAlert(low(receiver));
    manager.addAlert(
      low(receiver, { name: "open", metric: "circuit_breaker_open", comparison: "equal", threshold: 1 }),
    );
    manager.start();
    figures.set({ circuitBreakerOpen: true });
    await test.check();
    figures.read(10, 0.1);
    await test.check();
    figures.set({ circuitBreakerOpen: false });
    await test.check();
    expect(test.sent()).toEqual(["open firing 0", "low firing 0", "open resolved 0"]);
  });

  it("can be added after the start", async () => {
    await using test = await scene();
    test.manager.start();
    await test.check();
    test.manager.addAlert(low(test.receiver));
    test.figures.read(10, 0.1);
    await test.check();
    expect(test.sent()).toEqual(["low firing 0"]);
  });
});

describe("a failing delivery", () => {
  it("is counted, reported and retried under the same id, while checks go on", async () => {
    await using test = await scene();
    const { receiver, manager, figures, clock, errors } = test;
    receiver.respond = (response, received, count) =>
      answer(count < 3 ? 500 : 204)(response, received, count);
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.1);
    await clock.advance(CHECK_INTERVAL);
    await until(() => errors.length === 1, { what: "the first failure" });
    await clock.advance(5_000);
    await until(() => errors.length === 2, { what: "the second failure" });
    expect(manager.deliveries()).toEqual({
      delivered: 0,
      failedAttempts: 2,
      abandoned: 0,
      superseded: 0,
      pending: 1,
    });
    await clock.advance(10_000);
    await until(() => manager.deliveries().delivered === 1, { what: "the delivery" });
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    const stamps = receiver.received.map(({ headers }) => Number(headers["webhook-timestamp"]));
    expect(stamps[2]).toBeGreaterThan(stamps[0]!);
    expect(errors.every((error) => error instanceof AlertDeliveryError)).toBe(true);
  });

  it("to one destination blocks neither the checks nor the other destinations", async () => {
    await using test = await scene({ deliveryTimeout: 3_600 });
    await using frozen = await Receiver.start(() => {});
    const { receiver, manager, figures, clock } = test;
    manager.addAlert(low(receiver, { webhookUrl: [frozen.url, receiver.url] }));
    manager.start();
    for (const hitRate of [0.1, 0.9, 0.1]) {
      figures.read(10, hitRate);
      const before = receiver.received.length;
      await clock.advance(CHECK_INTERVAL);
      await receiver.has(before + 1);
      await until(() => manager.deliveries().delivered === before + 1, { what: "the delivery" });
    }
    expect(test.sent()).toEqual(["low firing 0", "low resolved 0", "low firing 0"]);
    expect(frozen.received).toHaveLength(1);
  });

  it("ends after deliveryTimeout", async () => {
    await using test = await scene({ deliveryTimeout: 10 });
    const { receiver, manager, figures, clock, errors } = test;
    receiver.respond = () => {};
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.1);
    await clock.advance(CHECK_INTERVAL);
    await receiver.has(1);
    await clock.advance(10_000);
    await until(() => errors.length === 1, { what: "the failure" });
    expect(errors[0]?.message).toContain("it did not answer within 10 s");
  });

  it("never reveals the secrets of its address", async () => {
    await using test = await scene({ webhookSecret: `whsec_${Buffer.alloc(24, "Zq9").toString("base64")}` });
    const { receiver, manager, figures, clock, errors } = test;
    receiver.respond = (response) => {
      response.writeHead(500, "Zq9reason").end("Zq9body");
    };
    const url = receiver.url.replace("://", "://Zq9user:Zq9pass@").replace("/hook", "/Zq9path?token=Zq9");
    manager.addAlert(low(receiver, { webhookUrl: url }));
    manager.start();
    figures.read(10, 0.1);
    await clock.advance(CHECK_INTERVAL);
    await until(() => errors.length === 1, { what: "the failure" });
    const { inspect } = await import("node:util");
    const shown = inspect([errors, manager, manager.states()], { depth: 10, showHidden: true });
    expect(shown).toContain(`webhook http://127.0.0.1:${receiver.port}: it answered 500`);
    expect(shown).not.toMatch(/Zq9|WnE5/);
  });

  it("becomes a process warning when there is no error listener", async () => {
    const figures = new Figures();
    const clock = new ManualClock();
    const manager = new AlertManager(figures, {}, clock);
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    await using receiver = await Receiver.start(answer(400));
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.1);
    await clock.advance(CHECK_INTERVAL);
    await until(() => warned.mock.calls.length === 1, { what: "the warning" });
    expect(warned.mock.calls[0]).toEqual([expect.stringContaining("it answered 400"), "XCacheWarning"]);
    await manager.stop();
  });

  it("survives a listener that throws or rejects", async () => {
    let calls = 0;
    const onError = (): Promise<void> => {
      calls++;
      if (calls === 1) throw new Error("listener");
      return Promise.reject(new Error("listener"));
    };
    await using test = await scene({ onError });
    const { receiver, manager, figures } = test;
    receiver.respond = answer(400);
    manager.addAlert(low(receiver));
    manager.start();
    for (const hitRate of [0.1, 0.9]) {
      figures.read(10, hitRate);
      await test.check();
    }
    expect([calls, manager.deliveries().abandoned]).toEqual([2, 2]);
  });
});

describe("a manager", () => {
  it("first checks after one interval, 30 seconds by default, and starts the cache's collection once", async () => {
    await using test = await scene();
    const looked = vi.spyOn(test.figures, "getComprehensiveMetrics");
    test.manager.start();
    test.manager.start();
    expect([looked.mock.calls.length, test.figures.collections]).toEqual([1, 1]);
    await test.clock.advance(29_999);
    expect(looked).toHaveBeenCalledTimes(1);
    await test.clock.advance(1);
    expect(looked).toHaveBeenCalledTimes(2);
    await test.clock.advance(90_000);
    expect(looked).toHaveBeenCalledTimes(5);
  });

  it("goes on when the figures cannot be read, and reports the error", async () => {
    await using test = await scene({ interval: 5 });
    const { figures, manager, receiver, errors, clock } = test;
    const fail = (): never => {
      throw new Error("no figures from redis://:Zq9@host");
    };
    vi.spyOn(figures, "getComprehensiveMetrics").mockImplementationOnce(fail).mockImplementationOnce(fail);
    manager.addAlert(low(receiver, { metric: "memory_usage" }));
    manager.start();
    await clock.advance(5_000);
    expect(errors.map(({ message }) => message)).toEqual(Array(2).fill("no figures from redis://***@host"));
    await clock.advance(5_000);
    await receiver.has(1);
  });

  it("does not need startMetricsCollection on a cache that lacks it", async () => {
    const figures = new Figures();
    const clock = new ManualClock();
    const errors: Error[] = [];
    const source = { getComprehensiveMetrics: () => figures.record };
    const manager = new AlertManager(source, { onError: (error) => errors.push(error) }, clock);
    manager.start();
    await clock.advance(CHECK_INTERVAL);
    await manager.stop();
    expect(errors).toEqual([]);
  });

  it("stops: no check, no timer, and deliveries in flight are awaited", async () => {
    await using test = await scene();
    const { receiver, manager, figures, clock } = test;
    let finish: (() => void) | undefined;
    receiver.respond = (response) => {
      finish = () => response.writeHead(204).end();
    };
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.1);
    await clock.advance(CHECK_INTERVAL);
    await receiver.has(1);
    let isStopped = false;
    const stopped = manager.stop().then(() => {
      isStopped = true;
    });
    await clock.advance(9_999);
    expect(isStopped).toBe(false);
    finish?.();
    await stopped;
    expect(manager.deliveries()).toMatchObject({ delivered: 1, pending: 0 });
    expect([manager.states(), clock.pending]).toEqual([[], 0]);
    await clock.advance(10 * CHECK_INTERVAL);
    expect(receiver.received).toHaveLength(1);
  });

  it("stops after the timeout at the latest, and aborts what is in flight", async () => {
    await using test = await scene();
    const { receiver, manager, figures, clock } = test;
    receiver.respond = () => {};
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.1);
    await clock.advance(CHECK_INTERVAL);
    await receiver.has(1);
    const stopped = manager.stop({ timeout: 2 });
    await clock.advance(2_000);
    await stopped;
    expect(manager.deliveries()).toMatchObject({ delivered: 0, abandoned: 1, pending: 0 });
    expect(clock.pending).toBe(0);
    await until(async () => (await receiver.openConnections()) === 0, { what: "no connection left" });
  });

  it("can be stopped twice, stopped unstarted, and disposed", async () => {
    const figures = new Figures();
    const clock = new ManualClock();
    {
      await using manager = new AlertManager(figures, {}, clock);
      await manager.stop();
      manager.start();
      await Promise.all([manager.stop(), manager.stop()]);
      manager.start();
      expect(clock.pending).toBe(1);
    }
    expect(clock.pending).toBe(0);
  });

  it("starts over after a stop: a condition that still holds fires again", async () => {
    await using test = await scene();
    const { receiver, manager, figures } = test;
    manager.addAlert(low(receiver));
    manager.start();
    figures.read(10, 0.1);
    await test.check();
    await manager.stop();
    manager.start();
    figures.read(10, 0.1);
    await test.check();
    expect(test.sent()).toEqual(["low firing 0", "low firing 0"]);
    const ids = receiver.received.map(({ payload }) => payload.data.incident_id);
    expect(ids[0]).not.toBe(ids[1]);
  });

  it("watches a real cache", async () => {
    await using receiver = await Receiver.start();
    const clock = new ManualClock();
    await using cache = cacheWithClock({ kvUrl: "memory://" }, clock);
    await using manager = new AlertManager(cache, {}, clock);
    for (const pattern of manager.patterns()) {
      manager.addAlert({ ...pattern, for: 0, webhookUrl: receiver.url });
    }
    manager.start();
    await clock.advance(CHECK_INTERVAL);
    expect(manager.states().map(({ status }) => status)).toEqual(Array(9).fill("inactive"));
    await cache.set("a", 1);
    await clock.advance(CHECK_INTERVAL);
    expect(receiver.received).toEqual([]);
    await cache.get("absent");
    await clock.advance(CHECK_INTERVAL);
    await receiver.has(1);
    expect(receiver.received[0]?.payload.data).toMatchObject({ name: "hit_rate_low", value: 0 });
    for (let read = 0; read < 9; read++) await cache.get("a");
    await clock.advance(CHECK_INTERVAL);
    await receiver.has(2);
    expect(receiver.received[1]?.payload.data).toMatchObject({ status: "resolved", value: 0.9 });
  });
});

describe("patterns", () => {
  it("cover the nine situations that are worth an alert", () => {
    const manager = new AlertManager(new Figures());
    const shown = manager
      .patterns({ evictionRate: 50 })
      .map(({ name, metric, comparison, threshold }) => `${name}: ${metric} ${comparison} ${threshold}`);
    expect(shown).toEqual([
      "hit_rate_low: hit_rate less_than 0.7",
      "response_time_high: avg_response_time greater_than 0.1",
      "error_rate_high: error_rate greater_than 0.01",
      "connection_failures: connection_failures greater_than 0",
      "circuit_breaker_open: circuit_breaker_open equal 1",
      "pool_exhausted: pool_utilization greater_or_equal 1",
      "memory_high: memory_usage greater_than 0.8",
      "pool_utilization_high: pool_utilization greater_than 0.9",
      "eviction_rate_high: eviction_rate greater_than 50",
    ]);
    expect(manager.patterns().at(-1)?.threshold).toBe(10);
  });

  it("include one more for a cache with a database feed, which fires while the feed is silent", async () => {
    await using test = await scene();
    const { manager, receiver, figures } = test;
    expect(manager.patterns({ feed: true })).toHaveLength(10);
    const pattern = manager.patterns({ feed: true }).at(-1)!;
    expect(pattern).toMatchObject({ name: "feed_silent", metric: "silent_feeds", for: 60 });
    manager.addAlert({ ...pattern, for: 0, webhookUrl: receiver.url });
    manager.start();
    // Without a feed there is no figure.
    await test.check();
    figures.set({ silentFeeds: 0 });
    await test.check();
    expect(test.sent()).toEqual([]);
    figures.set({ silentFeeds: 1 });
    await test.check();
    expect(test.sent()).toHaveLength(1);
  });

  it("fire in their situation and in no other", async () => {
    await using test = await scene();
    const { manager, receiver, figures } = test;
    for (const pattern of manager.patterns())
      manager.addAlert({ ...pattern, for: 0, webhookUrl: receiver.url });
    manager.start();
    const fine = {
      avgResponseTime: 0.1,
      errorRate: 0.01,
      poolUtilization: 0.9,
      memoryUsage: 0.8,
      evictionRate: 10,
    };
    figures.set(fine);
    figures.read(10, 0.7);
    await test.check();
    expect(test.sent()).toEqual([]);
    figures.set({
      ...{ avgResponseTime: 0.11, errorRate: 0.02, poolUtilization: 1, memoryUsage: 0.81, evictionRate: 11 },
      ...{ connectionFailures: 1, circuitBreakerOpen: true },
    });
    figures.read(10, 0.69);
    await test.check();
    expect(test.sent()).toHaveLength(9);
  });
});
