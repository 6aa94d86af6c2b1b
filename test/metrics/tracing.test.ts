import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import {
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { traceIfRegistered, traceWithOpenTelemetry } from "../../src/metrics/opentelemetry/spans.ts";
import { isTraced, runInSpans, TRACED_OPERATIONS, type TraceContext } from "../../src/metrics/tracing.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";

/** Subscribes to the channel of one operation; returns the received events. */
function watched(operation: string) {
  const received: { event: string; about: TraceContext & { result?: unknown; error?: unknown } }[] = [];
  const note = (event: string) => (about: object) =>
    void received.push({ event, about: { ...(about as TraceContext) } });
  const subscribers = {
    start: note("start"),
    end: note("end"),
    asyncStart: note("asyncStart"),
    asyncEnd: note("asyncEnd"),
    error: note("error"),
  };
  const channel = tracingChannel(`xcache:${operation}`);
  channel.subscribe(subscribers);
  const stop = (): void => void channel.unsubscribe(subscribers);
  onTestFinished(stop);
  return { received, events: () => received.map(({ event }) => event), stop };
}

describe("diagnostics channels", () => {
  it("report a get from start to end, hit or miss, with its result", async () => {
    const { cache } = memoryCache({ keyPrefix: "shop" });
    await cache.set("k", 5);
    // After the calls that are timed anyway.
    for (let n = 0; n < 100; n++) await cache.get("k");
    const { received, events } = watched("get");
    expect(await cache.get("k")).toBe(5);
    expect(await cache.get("absent")).toBeUndefined();
    expect(events()).toEqual([
      "start",
      "end",
      "asyncStart",
      "asyncEnd",
      "start",
      "end",
      "asyncStart",
      "asyncEnd",
    ]);
    expect(received[0]?.about).toEqual({ operation: "get", prefix: "shop", key: "k" });
    expect(received[3]?.about.result).toBe(5);
    expect(received[7]?.about).toEqual({
      operation: "get",
      prefix: "shop",
      key: "absent",
      result: undefined,
    });
  });

  it("report an error, which still reaches the caller", async () => {
    const { cache } = memoryCache();
    const { received, events } = watched("set");
    await expect(cache.set("", 1)).rejects.toMatchObject({ code: "KEY_INVALID" });
    expect(events()).toEqual(["start", "end", "error", "asyncStart", "asyncEnd"]);
    expect(received[2]?.about.error).toMatchObject({ code: "KEY_INVALID" });
  });

  it("report every operation", async () => {
    const { cache } = memoryCache({ enableFuzzy: true });
    const all = TRACED_OPERATIONS.map((operation) => [operation, watched(operation)] as const);
    await cache.set("k", 1);
    await cache.setMany({ a: 1 });
    await cache.get("k");
    await cache.getMany(["k"]);
    await cache.getOrSet("new", () => 1);
    await cache.exists("k");
    await cache.ttl("k");
    await cache.tags("k");
    await cache.fuzzySearch("k");
    await cache.getStats();
    await cache.delete("k");
    await cache.invalidateTags("t");
    await cache.invalidatePattern("x*");
    await cache.clear();
    for (const [operation, { events }] of all)
      expect(events(), operation).toEqual(["start", "end", "asyncStart", "asyncEnd"]);
  });

  it("reach a subscriber to a single event", async () => {
    const { cache } = memoryCache();
    for (const event of ["start", "end", "asyncStart", "asyncEnd", "error"] as const) {
      const channel = tracingChannel("xcache:clear")[event];
      const heard = (): void => {};
      expect(isTraced("clear")).toBe(false);
      channel.subscribe(heard);
      expect(isTraced("clear"), event).toBe(true);
      channel.unsubscribe(heard);
    }
    await cache.clear();
  });

  it.each(["start", "end", "asyncStart", "asyncEnd"] as const)(
    "report a getOrSet hit, even to a subscriber to %s only",
    async (event) => {
      const { cache } = memoryCache();
      await cache.set("k", 5);
      const heard: unknown[] = [];
      const note = (about: unknown): void => void heard.push(about);
      const channel = tracingChannel("xcache:getOrSet")[event];
      channel.subscribe(note);
      onTestFinished(() => void channel.unsubscribe(note));
      expect(await cache.getOrSet("k", () => 6)).toBe(5);
      expect(heard).toEqual([expect.objectContaining({ operation: "getOrSet", key: "k", result: 5 })]);
      expect((await cache.getStats()).totalHits).toBe(1);
    },
  );

  it.each(
    (["get", "set"] as const).flatMap((operation) =>
      (["start", "end", "asyncStart", "asyncEnd"] as const).map((event) => [operation, event] as const),
    ),
  )("tell of a %s on the quick way, also who subscribes to %s only", async (operation, event) => {
    const { cache } = memoryCache();
    await cache.set("k", 5);
    // After the calls that are timed anyway.
    for (let n = 0; n < 50; n++) await (operation === "get" ? cache.get("k") : cache.set("k", 5));
    const heard: unknown[] = [];
    const note = (about: unknown): void => void heard.push(about);
    const channel = tracingChannel(`xcache:${operation}`)[event];
    channel.subscribe(note);
    onTestFinished(() => void channel.unsubscribe(note));
    await (operation === "get" ? cache.get("k") : cache.set("k", 5));
    expect(heard).toEqual([expect.objectContaining({ operation, key: "k" })]);
  });

  it("count a reported hit like any other, and let a forced load run", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 5);
    watched("getOrSet");
    expect(await cache.getOrSet("k", () => 6)).toBe(5);
    const { byOperation } = cache.getComprehensiveMetrics();
    expect([byOperation.get?.count, byOperation.getOrSet]).toEqual([1, undefined]);
    expect(await cache.getOrSet("k", () => 7, { forceLoad: true })).toBe(7);
  });

  it("report a getOrSet without a load function", async () => {
    const { cache } = memoryCache();
    const { events } = watched("getOrSet");
    await expect(cache.getOrSet("k", 5 as never)).rejects.toMatchObject({ code: "ARGUMENT_INVALID" });
    expect(events()).toContain("error");
  });

  it("report a failing load to an error subscriber, after hits without errors", async () => {
    const { cache } = memoryCache();
    await cache.set("k", 5);
    const heard: unknown[] = [];
    const note = (about: unknown): void => void heard.push(about);
    const channel = tracingChannel("xcache:getOrSet").error;
    channel.subscribe(note);
    onTestFinished(() => void channel.unsubscribe(note));
    expect(await cache.getOrSet("k", () => 6)).toBe(5);
    const failing = (): never => {
      throw new Error("no database");
    };
    await expect(cache.getOrSet("absent", failing)).rejects.toThrow("no database");
    expect(heard).toEqual([expect.objectContaining({ operation: "getOrSet", key: "absent" })]);
  });

  it("do not affect counts, and nothing is reported after the last subscriber has left", async () => {
    const { cache } = memoryCache();
    const { received, stop } = watched("get");
    for (let n = 0; n < 300; n++) await cache.get("k");
    stop();
    const before = received.length;
    for (let n = 0; n < 300; n++) await cache.get("k");
    expect(received).toHaveLength(before);
    expect(cache.getComprehensiveMetrics().byOperation.get?.count).toBe(600);
    expect((await cache.getStats()).totalMisses).toBe(600);
  });
});

/** The minimum that OpenTelemetry needs to track the active span. */
class LocalContexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    active: Context,
    run: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(active, () => run.apply(self, args));
  }
  bind<T>(_active: Context, target: T): T {
    return target;
  }
  enable(): this {
    return this;
  }
  disable(): this {
    this.#storage.disable();
    return this;
  }
}

function spanExporter() {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new LocalContexts().enable());
  onTestFinished(() => context.disable());
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return { tracerProvider, spans };
}

describe("OpenTelemetry spans", () => {
  afterEach(() => runInSpans(undefined));

  // Must run first: what it tests is decided once per process.
  it("are created automatically once a provider is registered, not before, and not after they were stopped", async () => {
    const { tracerProvider, spans } = spanExporter();
    traceIfRegistered();
    expect(isTraced("get")).toBe(false);
    trace.setGlobalTracerProvider(tracerProvider);
    onTestFinished(() => trace.disable());
    const { cache } = memoryCache();
    await cache.get("k");
    expect(spans().map(({ name }) => name)).toEqual(["xcache.get"]);
    traceWithOpenTelemetry()();
    await memoryCache().cache.get("k");
    expect(spans()).toHaveLength(1);
  });

  it("are created per operation, with its name and whether there was an entry, but no key", async () => {
    const { tracerProvider, spans } = spanExporter();
    const stop = traceWithOpenTelemetry({ tracerProvider });
    const { cache } = memoryCache({ keyPrefix: "shop" });
    await cache.set("user:42", 1);
    await cache.get("user:42");
    await cache.get("absent");
    expect(spans().map(({ name, attributes }) => [name, attributes])).toEqual([
      ["xcache.set", { "xcache.operation": "set", "xcache.prefix": "shop" }],
      ["xcache.get", { "xcache.operation": "get", "xcache.prefix": "shop", "xcache.hit": true }],
      ["xcache.get", { "xcache.operation": "get", "xcache.prefix": "shop", "xcache.hit": false }],
    ]);
    expect(spans()[0]?.instrumentationScope.name).toBe("xcache");
    stop();
    await cache.get("user:42");
    expect(spans()).toHaveLength(3);
  });

  it("are created for a getOrSet hit too", async () => {
    const { tracerProvider, spans } = spanExporter();
    const { cache } = memoryCache();
    await cache.set("k", 1);
    traceWithOpenTelemetry({ tracerProvider });
    expect(await cache.getOrSet("k", () => 2)).toBe(1);
    expect(spans().map(({ name }) => name)).toEqual(["xcache.getOrSet"]);
  });

  it("are parents of the load's spans, and children of the caller's", async () => {
    const { tracerProvider, spans } = spanExporter();
    traceWithOpenTelemetry({ tracerProvider });
    const tracer = tracerProvider.getTracer("test");
    const { cache } = memoryCache();
    await tracer.startActiveSpan("request", async (request) => {
      await cache.getOrSet("k", () => {
        tracer.startSpan("query").end();
        return 1;
      });
      request.end();
    });
    const byName = new Map(spans().map((span) => [span.name, span]));
    const idOf = (name: string) => byName.get(name)?.spanContext().spanId;
    expect(byName.get("query")?.parentSpanContext?.spanId).toBe(idOf("xcache.getOrSet"));
    expect(byName.get("xcache.getOrSet")?.parentSpanContext?.spanId).toBe(idOf("request"));
  });

  it("of failed operations have an error status, by type", async () => {
    const { tracerProvider, spans } = spanExporter();
    traceWithOpenTelemetry({ tracerProvider });
    const { cache } = memoryCache();
    await expect(cache.get("")).rejects.toThrow();
    expect(spans()[0]?.status.code).toBe(SpanStatusCode.ERROR);
    expect(spans()[0]?.attributes["error.type"]).toBe("key");
    expect(spans()[0]?.events[0]?.name).toBe("exception");
  });

  it("are not ended by a late stop of an earlier start", async () => {
    const { tracerProvider, spans } = spanExporter();
    const stopFirst = traceWithOpenTelemetry({ tracerProvider });
    traceWithOpenTelemetry({ tracerProvider });
    stopFirst();
    await memoryCache().cache.get("k");
    expect(spans()).toHaveLength(1);
  });
});
