// Durations as numbers of seconds or as texts, wherever one is accepted; tags as one string or a list.
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { checkAlert } from "../../src/alerts/definition.ts";
import { configFromEnv } from "../../src/config/env.ts";
import { resolveConfig } from "../../src/config/resolve.ts";
import { parseStoreAddress } from "../../src/core/address/store-url.ts";
import { textOf, toSeconds } from "../../src/core/duration.ts";
import type { SetOptions } from "../../src/core/options.ts";
import { cached } from "../../src/functions/cached.ts";
import { cacheWithClock, ManualClock } from "../../src/testing/manual-clock.ts";
import { checkOptions } from "../../src/web/engine/options.ts";
import { XCache } from "../../src/xcache.ts";
import { programFile } from "../support/own-process.ts";

const TEXTS: readonly (readonly [string, number])[] = [
  ["0s", 0],
  ["1ms", 0.001],
  ["500ms", 0.5],
  ["30s", 30],
  ["1.5s", 1.5],
  ["5m", 300],
  ["0.5m", 30],
  ["2h", 7_200],
  ["7d", 604_800],
];

const NOT_DURATIONS: readonly string[] = [
  ...["5", "", "m", "5 m", " 5m", "5M", "-5m", "+5m", "1e3s", "5mm", "5min", ".5s", "5.s", "Infinitys"],
  `${"9".repeat(400)}s`,
];

describe("a text", () => {
  it.each(TEXTS)("%j is %d seconds", (text, seconds) => {
    expect(toSeconds(text)).toBe(seconds);
    // The second parse is served from memory.
    expect(toSeconds(text)).toBe(seconds);
  });

  it.each(NOT_DURATIONS)("%j is not a duration", (text) => expect(toSeconds(text)).toBe(text));

  it("are all parsed, up to the maximum number of distinct ones", () => {
    for (let ms = 1; ms < 2_000; ms++) expect(toSeconds(`${ms}ms`)).toBe(ms / 1_000);
  });
});

const config = { kvUrl: "memory://" } as const;

describe("operations", () => {
  it("accept texts: the entry lives exactly that long", async () => {
    const clock = new ManualClock();
    await using cache = cacheWithClock(config, clock);
    await cache.set("set", 1, { ttl: "1500ms" });
    await cache.setMany([["many", 1]], { ttl: "1500ms" });
    await cache.getOrSet("load", () => 1, { ttl: "1500ms" });
    await cache.getOrSet("decided", ({ setTtl }) => setTtl("1500ms") ?? 1, { ttl: "1d" });
    for (const key of ["set", "many", "load", "decided"]) expect(await cache.ttl(key), key).toBe(1.5);
    await clock.advance(1_499);
    expect((await cache.getMany(["set", "many", "load", "decided"])).size).toBe(4);
    await clock.advance(1);
    expect((await cache.getMany(["set", "many", "load", "decided"])).size).toBe(0);
  });

  it("accept texts for stale windows and timeouts", async () => {
    const clock = new ManualClock();
    await using cache = cacheWithClock(config, clock);
    const fails = (): never => {
      throw new Error("no load");
    };
    const options = { ttl: "1s", staleIfError: "1m", softTimeout: "10s", hardTimeout: "1h" } as const;
    await cache.getOrSet("key", () => 1, options);
    await clock.advance(60_999);
    expect(await cache.getOrSet("key", fails, options)).toBe(1);
    await clock.advance(2);
    await expect(cache.getOrSet("key", fails, options)).rejects.toThrow("no load");
  });

  it.each([...NOT_DURATIONS.slice(0, 8), "0s", "0.5ms"])("reject ttl %j", async (ttl) => {
    await using cache = new XCache(config);
    await expect(cache.set("key", 1, { ttl: ttl as "1s" })).rejects.toMatchObject({
      code: "ARGUMENT_INVALID",
      message: expect.stringContaining('or a text such as "500ms", "30s" or "5m", got '),
    });
    // Invalid options are rejected even on a hit.
    await cache.set("key", 1);
    await expect(cache.getOrSet("key", () => 2, { ttl: ttl as "1s" })).rejects.toMatchObject({
      code: "ARGUMENT_INVALID",
    });
  });

  it("accept tags as one string or a list, in every call", async () => {
    await using cache = new XCache(config);
    const options: SetOptions = { tags: "users" };
    const find = cached(async (id: number) => id, {
      cache,
      name: "find",
      tags: "users",
      resultTags: () => "all",
    });
    const findOther = cached(async (id: number) => id, { cache, name: "other", tags: (id) => `user:${id}` });
    const fill = async (): Promise<number> => {
      await cache.set("set", 1, options);
      await cache.setMany([["many", 1]], options);
      await cache.getOrSet("load", () => 1, options);
      await cache.getOrSet("load", () => 2, options);
      await cache.getOrSet("decided", ({ setTags }) => setTags("users") ?? 1);
      await find(1);
      await findOther(2);
      return (await cache.getMany(["set", "many", "load", "decided", find.key(1), findOther.key(2)])).size;
    };
    expect(await fill()).toBe(6);
    expect(await cache.tags("set")).toEqual(["users"]);
    expect([...((await cache.tags(find.key(1))) ?? [])].sort()).toEqual(["all", "users"]);
    await cache.invalidateTags("users");
    expect((await cache.getMany(["set", "many", "load", "decided", find.key(1)])).size).toBe(0);
    await cache.invalidateTags("user:2");
    expect(await cache.get(findOther.key(2))).toBeUndefined();
  });
});

describe("other places", () => {
  it("the configuration, its tables and the environment", () => {
    const resolved = resolveConfig({
      ...{ defaultTtl: "5m", operationTimeout: "500ms", connectTimeout: "2s", staleIfError: "1h" },
      ...{ staleWhileRevalidate: "0s", loadLimit: "90s", circuitBreaker: { resetTimeout: "1m" } },
      tables: { users: { ttl: "1d", tags: "people" }, orders: { tags: ["a", "b"] } },
    });
    expect(resolved).toMatchObject({
      ...{ defaultTtl: 300, operationTimeout: 0.5, connectTimeout: 2, staleIfError: 3_600 },
      ...{ staleWhileRevalidate: 0, loadLimit: 90, circuitBreaker: { resetTimeout: 60 } },
      tables: { users: { ttl: 86_400, tags: ["people"] }, orders: { tags: ["a", "b"] } },
    });
    expect(configFromEnv({ XCACHE_DEFAULT_TTL: " 5m ", XCACHE_OPERATION_TIMEOUT: "250ms" })).toEqual({
      defaultTtl: 300,
      operationTimeout: 0.25,
    });
    expect(() => configFromEnv({ XCACHE_DEFAULT_TTL: "5 minutes" })).toThrow(/or a text such as .*5 minutes/);
    expect(() => resolveConfig({ operationTimeout: "0ms" })).toThrow(/operationTimeout must be/);
  });

  it("store addresses, alerts and the HTTP cache", async () => {
    expect(
      parseStoreAddress("redis://host?keep_alive=1m&reconnect_pause=50ms&max_reconnect_pause=1s"),
    ).toMatchObject({
      options: { keepAlive: 60, reconnectPause: 0.05, maxReconnectPause: 1 },
    });
    const alert = { name: "slow", metric: "hit_rate", comparison: "less_than", threshold: 1 } as const;
    expect(
      checkAlert({ ...alert, for: "5m", repeatInterval: "2h", emailRecipients: ["a@b.example"] } as never, 1),
    ).toMatchObject({
      forMs: 300_000,
      repeatMs: 7_200_000,
    });
    await using cache = new XCache(config);
    expect(
      checkOptions({
        cache,
        ttl: "5m",
        staleIfError: "1d",
        fillTimeout: "10s",
        streamAfter: "500ms",
        tags: "pages",
      }),
    ).toMatchObject({ ttl: 300, staleIfError: 86_400, fillTimeout: 10, streamAfter: 0.5, tags: ["pages"] });
  });
});

describe("a ttl that was probably meant as milliseconds", () => {
  /** The warnings of a process; each line has run before the next. */
  const warningsOf = (...lines: string[]): string => {
    const program = programFile(
      `import { XCache } from "./index.js"; const cache = new XCache({ kvUrl: "memory://" });\n${lines.join("\n")}`,
    );
    return execFileSync(process.execPath, ["--no-deprecation", "-e", RUN, program], { encoding: "utf8" });
  };
  const RUN = `process.on("warning", (w) => console.log([w.name, w.code, w.message, w.detail].join("|"))); import(process.argv[1])`;

  it("warns once, with its meaning and what to write instead", () => {
    expect(
      warningsOf(
        `await cache.set("a", 1, { ttl: 3_600_000 });`,
        `await cache.set("b", 1, { ttl: 86_400_000 });`,
        `await cache.getOrSet("c", () => 1, { ttl: 40_000_000 });`,
      ),
    ).toBe(
      'XCacheWarning|XCACHE_TTL_UNIT|ttl: 3600000 is a number of seconds, 42 days.|If milliseconds were meant, write 3600 or "3600000ms". If not, "1000h" means the same and does not warn.\n',
    );
  });

  it("warns in the configuration too", () => {
    expect(warningsOf(`new XCache({ kvUrl: "memory://", defaultTtl: 60_000_000 });`)).toContain(
      "defaultTtl: 60000000 is a number of seconds, 694 days.",
    );
  });

  it.each([
    [3_600_000, "1000h"],
    [86_400_000, "1000d"],
    [40_000_020, "666667m"],
    [31_536_001, "31536001s"],
    [40_000_000.5, "40000000500ms"],
  ])("suggests a text that means the same: %d", (ttl, text) => {
    expect(textOf(ttl)).toBe(text);
    expect(toSeconds(text)).toBe(ttl);
  });

  it("warns in the options of the HTTP cache too", () => {
    const program = programFile(
      `import { XCache } from "./index.js"; import { httpCache } from "./web/fetch.js";
      const cache = new XCache({ kvUrl: "memory://" });
      httpCache({ cache, ttl: "1000h", staleIfError: 86_400_000 });
      httpCache({ cache, ttl: 3_600_000 });`,
    );
    const warnings = execFileSync(process.execPath, ["-e", RUN, program], { encoding: "utf8" });
    expect(warnings).toContain("ttl: 3600000 is a number of seconds, 42 days.");
  });

  it("does not warn about a year, texts or Infinity", () => {
    expect(
      warningsOf(
        `await cache.set("a", 1, { ttl: 31_536_000 });`,
        `await cache.set("b", 1, { ttl: "1000d" });`,
        `await cache.set("c", 1, { ttl: Infinity });`,
        `await cache.set("d", 1, { ttl: 3_600_001 });`,
        `await new XCache({ kvUrl: "memory://", defaultTtl: "1000d" }).set("e", 1);`,
      ),
    ).toBe("");
  });
});
