// Values that callers change as soon as they have them: nobody else sees that, however close behind.
import { describe, expect, test } from "vitest";
import type { GetOrSetOptions } from "../../../src/core/options.ts";
import { XCache } from "../../../src/xcache.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";
import { Gate } from "./gate.ts";

const caches = redisCaches({ operationTimeout: 10 });

describe.each([
  ["memory", () => new XCache({ kvUrl: "memory://" })],
  ["redis", () => caches.open()],
  ["redis with a near tier", () => caches.open({ nearCache: true })],
])("on %s", (_name, open) => {
  test.each<[string, GetOrSetOptions]>([
    ["no options", {}],
    ["a timeout", { hardTimeout: 10 }],
    ["a stale window", { staleWhileRevalidate: 10 }],
  ])("callers of one load, the first with %s", async (_options, options) => {
    await using cache = open();
    const gate = new Gate<string[]>();
    const call = async (who: string, given?: GetOrSetOptions): Promise<string[]> => {
      const value = await cache.getOrSet("k", gate.load, given);
      const seen = [...value];
      value.push(who);
      return seen;
    };
    const callers = [call("first", options), call("second"), call("third", { hardTimeout: 10 })];
    await until(() => gate.calls > 0, { what: "it loads" });
    await gate.finish(["loaded"]);
    expect(await Promise.all(callers)).toEqual([["loaded"], ["loaded"], ["loaded"]]);
    expect(await cache.get("k")).toEqual(["loaded"]);
  });

  test("a stale value that is served while a load gets it too", async () => {
    await using cache = open();
    const options = { ttl: 0.001, staleWhileRevalidate: 60 };
    await cache.getOrSet("k", () => ["loaded"], options);
    await until(async () => !(await cache.exists("k")), { what: "it has expired" });
    const gate = new Gate<string[]>();
    const served = await cache.getOrSet("k", gate.load, options);
    served.push("served");
    await until(() => gate.calls > 0, { what: "it loads" });
    expect(gate.contexts[0]?.stale).toEqual(["loaded"]);
    gate.contexts[0]?.stale?.push("stale");
    expect(served).toEqual(["loaded", "served"]);
    await gate.finish(["loaded again"]);
  });
});
