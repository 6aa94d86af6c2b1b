import { describe, expect, expectTypeOf, it } from "vitest";
import { configFromEnv, fieldFromText } from "../../src/config/env.ts";
import { resolveConfig } from "../../src/config/resolve.ts";
import { envName, fieldNames, fields } from "../../src/config/schema.ts";
import type { CacheConfig } from "../../src/config/types.ts";
import { configErrorOf } from "./thrown.ts";

describe("values", () => {
  it("every field that fits in a line has a variable", () => {
    expect(
      configFromEnv({
        XCACHE_KV_URL: "redis://u:p@h:1/2",
        XCACHE_DEFAULT_TTL: "60",
        XCACHE_KEY_PREFIX: " my app ",
        XCACHE_ENABLE_FUZZY: "true",
        XCACHE_ENABLE_METRICS: "off",
        XCACHE_METRICS_RETENTION_DAYS: "30",
        XCACHE_NEAR_CACHE: "on",
        XCACHE_OPERATION_TIMEOUT: "0.5",
        XCACHE_CONNECT_TIMEOUT: "1e1",
        XCACHE_POOL_SIZE: "4",
        XCACHE_COMPRESSION: "yes",
        XCACHE_STALE_IF_ERROR: "3600",
        XCACHE_STALE_WHILE_REVALIDATE: ".5",
        XCACHE_LOAD_LIMIT: "90",
        XCACHE_TTL_JITTER: "0.1",
        XCACHE_SERIALIZATION: "json",
      }),
    ).toEqual({
      kvUrl: "redis://u:p@h:1/2",
      defaultTtl: 60,
      keyPrefix: " my app ",
      enableFuzzy: true,
      enableMetrics: false,
      metricsRetentionDays: 30,
      nearCache: { maxEntries: 10_000, maxBytes: 67_108_864, values: "copy" },
      operationTimeout: 0.5,
      connectTimeout: 10,
      poolSize: 4,
      compression: { thresholdBytes: 1024, algorithm: "brotli" },
      staleIfError: 3600,
      staleWhileRevalidate: 0.5,
      loadLimit: 90,
      ttlJitter: 0.1,
      serialization: "json",
    });
  });

  it("the variables are these and no others", () => {
    const settable = fieldNames().filter((field) => fields()[field].shape.fromText !== undefined);
    expect(fieldNames().filter((field) => !settable.includes(field))).toEqual([
      "tables",
      "backend",
      "metrics",
      "circuitBreaker",
      "encryption",
    ]);
  });

  it.each([
    ["true", true],
    ["TRUE", true],
    ["1", true],
    ["yes", true],
    ["On", true],
    [" true ", true],
    ["false", false],
    ["0", false],
    ["no", false],
    ["OFF", false],
  ])("%j is parsed as %j", (text, value) => {
    expect(configFromEnv({ XCACHE_ENABLE_FUZZY: text })).toEqual({ enableFuzzy: value });
  });

  it.each([
    ["Infinity", Number.POSITIVE_INFINITY],
    ["infinity", Number.POSITIVE_INFINITY],
    [" 300 ", 300],
    ["+5", 5],
    ["0.001", 0.001],
    ["1.", 1],
  ])("a ttl of %j is parsed as %d", (text, value) => {
    expect(configFromEnv({ XCACHE_DEFAULT_TTL: text })).toEqual({ defaultTtl: value });
  });

  it("an empty or unset variable sets nothing", () => {
    const empty = Object.fromEntries(fieldNames().map((field) => [envName(field), ""]));
    expect(configFromEnv(empty)).toEqual({});
    expect(configFromEnv({ XCACHE_DEFAULT_TTL: undefined })).toEqual({});
    expect(configFromEnv({})).toEqual({});
  });

  it("the result is a configuration", () => {
    expectTypeOf(configFromEnv({})).toExtend<CacheConfig>();
    expect(resolveConfig(configFromEnv({ XCACHE_POOL_SIZE: "2" })).poolSize).toBe(2);
  });
});

describe("unknown variables", () => {
  it.each([
    ["XCACHE_DEFUALT_TTL", "XCACHE_DEFAULT_TTL"],
    ["XCACHE_DEFAULT_TTLS", "XCACHE_DEFAULT_TTL"],
    ["XCACHE_DEFAULTTTL", "XCACHE_DEFAULT_TTL"],
    ["XCACHE_TTL", "XCACHE_DEFAULT_TTL"],
    ["XCACHE_URL", "XCACHE_KV_URL"],
    ["XCACHE_KV_URI", "XCACHE_KV_URL"],
    ["XCACHE_PREFIX", "XCACHE_KEY_PREFIX"],
    ["XCACHE_POOLSIZE", "XCACHE_POOL_SIZE"],
    ["XCACHE_TABEL", "XCACHE_TABLES"],
  ])("%s is rejected, since %s must be meant", (variable, meant) => {
    const error = configErrorOf(() => configFromEnv({ [variable]: "1" }));
    expect(error.code).toBe("CONFIG_UNKNOWN_FIELD");
    expect(error.message).toBe(`unknown variable ${variable}: did you mean ${meant}?`);
  });

  it.each([
    "XCACHE_TEST_REDIS_SERVER",
    "XCACHE_LOG_LEVEL",
    "XCACHE_",
    "XCACHE",
    "XCACHED_DEFAULT_TTL",
    "MY_XCACHE_DEFAULT_TTLS",
    `XCACHE_${"A".repeat(100_000)}`,
    "PATH",
  ])("%.40s is left alone", (variable) => {
    expect(configFromEnv({ [variable]: "1", XCACHE_POOL_SIZE: "2" })).toEqual({ poolSize: 2 });
  });

  it("an empty one is left alone too", () => {
    expect(configFromEnv({ XCACHE_DEFUALT_TTL: "" })).toEqual({});
  });

  it("no two of our own variables are mistaken for each other's typo", () => {
    for (const field of fieldNames()) {
      const { fromText } = fields()[field].shape;
      if (fromText === undefined) continue;
      const value = fields()[field].default ?? "text";
      expect(configFromEnv({ [envName(field)]: String(value) })).toEqual({ [field]: value });
    }
  });
});

describe("messages", () => {
  it("a value meant for another variable shows no credentials", () => {
    const { message } = configErrorOf(() => configFromEnv({ XCACHE_POOL_SIZE: "redis://u:hush@h" }));
    expect(message).toBe('XCACHE_POOL_SIZE must be a whole number from 1 to 1024, got "redis://***@h"');
  });

  it("a field that text cannot represent names the place where it belongs", () => {
    expect(configErrorOf(() => configFromEnv({ XCACHE_TABLES: "{}" })).message).toBe(
      'XCACHE_TABLES must be a map from table name to { ttl, tags }, which can only be set in a config object or file, got "{}"',
    );
    expect(configErrorOf(() => configFromEnv({ XCACHE_BACKEND: "memory" })).message).toBe(
      'XCACHE_BACKEND must be a Backend object, which can only be set in code, got "memory"',
    );
  });

  it("text given by a flag is rejected under the flag's name", () => {
    expect(fieldFromText("poolSize", "4", "--pool-size")).toBe(4);
    expectTypeOf(fieldFromText("poolSize", "4", "--pool-size")).toEqualTypeOf<number>();
    expect(configErrorOf(() => fieldFromText("kvUrl", "redis://h:x", "--kv-url")).message).toMatch(
      /^--kv-url: a port/,
    );
  });
});

describe("invalid environments", () => {
  it.each([null, 5, "XCACHE_DEFAULT_TTL=5", true, () => ({})])("%s is rejected as such", (env) => {
    const error = configErrorOf(() => configFromEnv(env as never));
    expect(error.code).toBe("ARGUMENT_INVALID");
    expect(error.message).toMatch(
      /^env must be an object of environment variables, such as process\.env, got /,
    );
  });

  it.each([
    [5, "5"],
    [null, "null"],
    [false, "false"],
    [["5"], "an array of 1"],
  ])("a variable that holds %s instead of text is rejected by its name", (value, arrived) => {
    const error = configErrorOf(() => configFromEnv({ XCACHE_DEFAULT_TTL: value as never }));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toBe(`XCACHE_DEFAULT_TTL must be a string, got ${arrived}`);
  });

  it("variables of other programs may hold anything", () => {
    expect(configFromEnv({ PATH: 5 as never, XCACHE_THEIRS: {} as never })).toEqual({});
  });
});
