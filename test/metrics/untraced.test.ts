// Without DEBUG and without subscribers, an operation builds nothing for a trace.
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { debugLog } from "../../src/core/debug.ts";
import { Telemetry } from "../../src/metrics/recording/telemetry.ts";
import { decisionSink } from "../../src/web/engine/decision.ts";
import { XCache } from "../../src/xcache.ts";

beforeEach(() => {
  vi.stubEnv("DEBUG", "");
  return () => vi.unstubAllEnvs();
});

describe("without DEBUG", () => {
  test.each(["cache", "db", "http"])("there is no log of %s to write lines for", (subject) => {
    expect(debugLog(subject)).toBeUndefined();
  });

  test("the HTTP cache has nothing to call for a decision", () => {
    expect(decisionSink(undefined, () => {})).toBeUndefined();
  });

  test("no operation reaches the tracing of a cache", async () => {
    const { trace } = Telemetry.prototype;
    const traced: string[] = [];
    Telemetry.prototype.trace = function (operation, about, work) {
      traced.push(operation);
      return trace.call(this, operation, about, work) as ReturnType<typeof work>;
    };
    onTestFinished(() => {
      Telemetry.prototype.trace = trace;
    });
    const cache = new XCache({ kvUrl: "memory://" });
    onTestFinished(() => cache.disconnect());
    await cache.set("k", 1, { tags: ["t"] });
    await cache.get("k");
    await cache.get("missing");
    await cache.getOrSet("k", () => 1);
    await cache.getOrSet("loaded", () => 1);
    await cache.getMany(["k"]);
    await cache.invalidateTags("t");
    await cache.delete("k");
    expect(traced).toEqual([]);
  });
});
