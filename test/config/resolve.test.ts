import { describe, expect, expectTypeOf, it } from "vitest";
import { resolveConfig } from "../../src/config/resolve.ts";
import { fieldNames, fields } from "../../src/config/schema.ts";
import type { CacheConfig, CheckedConfig, ResolvedConfig } from "../../src/config/types.ts";
import type { Backend } from "../../src/core/backend.ts";
import type { Collector } from "../../src/core/collector.ts";
import type { Duration } from "../../src/core/duration.ts";
import { EncryptionSettings } from "../../src/core/encryption-settings.ts";
import type { Wire } from "../../src/core/wire.ts";
import { idleBackend, idleCollector } from "./store.ts";
import { configErrorOf } from "./thrown.ts";

describe("defaults", () => {
  it("an empty configuration is the documented one", () => {
    expect(resolveConfig({})).toEqual({
      kvUrl: "redis://localhost:6379/0",
      defaultTtl: 300,
      keyPrefix: "xcache",
      enableFuzzy: false,
      tables: {},
      enableMetrics: true,
      metricsRetentionDays: 7,
      backend: undefined,
      metrics: undefined,
      nearCache: false,
      operationTimeout: 1,
      connectTimeout: 5,
      poolSize: 1,
      circuitBreaker: { failureThreshold: 5, resetTimeout: 30 },
      compression: false,
      staleIfError: 0,
      staleWhileRevalidate: 0,
      loadLimit: 60,
      ttlJitter: 0,
      serialization: "msgpack",
      encryption: false,
    });
  });

  it("nothing at all is an empty configuration, and a field set to undefined is omitted", () => {
    expect(resolveConfig(undefined)).toEqual(resolveConfig({}));
    expect(resolveConfig({ defaultTtl: undefined, tables: undefined })).toEqual(resolveConfig({}));
    expect(Object.keys(resolveConfig({ tables: { users: undefined } }).tables)).toEqual([]);
  });

  it("every field is present, even without a value", () => {
    expect(Object.keys(resolveConfig({}))).toEqual(fieldNames());
  });

  it("every default passes its own check", () => {
    const defaults = Object.fromEntries(fieldNames().map((field) => [field, fields()[field].default]));
    expect(resolveConfig(defaults)).toEqual(resolveConfig({}));
  });

  it("the circuit breaker's defaults are the same in the table and in its fields", () => {
    expect(resolveConfig({ circuitBreaker: {} }).circuitBreaker).toEqual(fields().circuitBreaker.default);
  });
});

describe("values", () => {
  it("every field accepts what it is given", () => {
    const given = {
      kvUrl: "memory://?max_entries=10",
      username: "app",
      password: () => "secret",
      defaultTtl: Number.POSITIVE_INFINITY,
      keyPrefix: "my app: ü%!",
      enableFuzzy: true,
      tables: { users: { ttl: 0.001, tags: ["a", "b"] }, orders: {} },
      enableMetrics: false,
      metricsRetentionDays: 3650,
      backend: idleBackend,
      metrics: idleCollector,
      nearCache: { maxEntries: 1, maxBytes: 2, values: "shared" },
      operationTimeout: 0.25,
      connectTimeout: 60,
      poolSize: 1024,
      circuitBreaker: { failureThreshold: 1, resetTimeout: 0.5 },
      compression: { thresholdBytes: 0, algorithm: "gzip" },
      staleIfError: 60,
      staleWhileRevalidate: 0.5,
      loadLimit: 90,
      ttlJitter: 0.99,
      serialization: "json",
      encryption: new EncryptionSettings({ keys: { a: "a secret of sixteen bytes" } }),
    } as const satisfies Required<CacheConfig>;
    expect(resolveConfig(given)).toEqual(given);
    expect(resolveConfig(given).backend).toBe(idleBackend);
    expect(resolveConfig(given).metrics).toBe(idleCollector);
  });

  it("a complete configuration resolves to itself", () => {
    const once = resolveConfig({
      nearCache: true,
      compression: true,
      tables: { a: { ttl: 1 } },
      circuitBreaker: {},
    });
    expect(resolveConfig(once)).toEqual(once);
  });

  it.each([
    [true, { maxEntries: 10_000, maxBytes: 67_108_864, values: "copy" }],
    [{}, { maxEntries: 10_000, maxBytes: 67_108_864, values: "copy" }],
    [{ maxEntries: 5 }, { maxEntries: 5, maxBytes: 67_108_864, values: "copy" }],
    [false, false],
  ])("nearCache %j means %j", (given, means) => {
    expect(resolveConfig({ nearCache: given }).nearCache).toEqual(means);
  });

  it.each([
    [true, { thresholdBytes: 1024, algorithm: "brotli" }],
    [{ thresholdBytes: 10 }, { thresholdBytes: 10, algorithm: "brotli" }],
    [{ algorithm: "gzip" }, { thresholdBytes: 1024, algorithm: "gzip" }],
    [false, false],
  ])("compression %j means %j", (given, means) => {
    expect(resolveConfig({ compression: given }).compression).toEqual(means);
  });

  it("a partial circuit breaker keeps the other default", () => {
    expect(resolveConfig({ circuitBreaker: { failureThreshold: 9 } }).circuitBreaker).toEqual({
      failureThreshold: 9,
      resetTimeout: 30,
    });
  });

  it("zstd is accepted if this Node has it, and rejected with the reason if not", async () => {
    const given = { compression: { algorithm: "zstd" } };
    if ("zstdCompressSync" in (await import("node:zlib"))) {
      expect(resolveConfig(given).compression).toEqual({ thresholdBytes: 1024, algorithm: "zstd" });
    } else {
      expect(configErrorOf(() => resolveConfig(given)).message).toMatch(
        /^compression\.algorithm must be "brotli" or "gzip" on Node .*, which has no zstd, got "zstd"$/,
      );
    }
  });

  it("the key prefix can be 256 bytes long, whatever its characters", () => {
    expect(resolveConfig({ keyPrefix: "ü".repeat(128) }).keyPrefix).toHaveLength(128);
    configErrorOf(() => resolveConfig({ keyPrefix: `${"ü".repeat(128)}x` }));
  });

  it("an object without a prototype is a configuration too", () => {
    const bare = Object.assign(Object.create(null) as object, { defaultTtl: 5 });
    expect(resolveConfig(bare).defaultTtl).toBe(5);
  });
});

describe("isolation", () => {
  it("changing the given object changes nothing afterwards", () => {
    const tags = ["a"];
    const given = { defaultTtl: 5, tables: { users: { tags } }, circuitBreaker: { failureThreshold: 2 } };
    const resolved = resolveConfig(given);
    given.defaultTtl = 6;
    given.circuitBreaker.failureThreshold = 3;
    tags.push("b");
    expect(resolved.defaultTtl).toBe(5);
    expect(resolved.circuitBreaker.failureThreshold).toBe(2);
    expect(resolved.tables.users).toEqual({ tags: ["a"] });
  });

  it("the result is frozen at every level", () => {
    const resolved = resolveConfig({
      tables: { users: { tags: ["a"] } },
      nearCache: true,
      compression: true,
    });
    const parts = [
      resolved,
      resolved.tables,
      resolved.tables.users,
      resolved.tables.users?.tags,
      resolved.nearCache,
      resolved.compression,
      resolved.circuitBreaker,
      resolveConfig({}).tables,
      resolveConfig({}).circuitBreaker,
    ];
    expect(parts.map((part) => Object.isFrozen(part))).toEqual(parts.map(() => true));
  });

  it("a table that is not configured is not found, whatever its name", () => {
    const { tables } = resolveConfig({
      tables: JSON.parse('{"__proto__": {"ttl": 5}, "users": {}}') as object,
    });
    expect(tables.constructor).toBeUndefined();
    expect(tables.toString).toBeUndefined();
    expect(Object.entries(tables)).toEqual([
      ["__proto__", { ttl: 5 }],
      ["users", {}],
    ]);
    expect(({} as { ttl?: number }).ttl).toBeUndefined();
    expect(resolveConfig({}).tables.constructor).toBeUndefined();
  });
});

describe("types", () => {
  it("the public configuration has exactly the fields of the table, all optional and readonly", () => {
    expectTypeOf<keyof CacheConfig>().toEqualTypeOf<keyof ResolvedConfig>();
    expectTypeOf<CacheConfig>().toEqualTypeOf<Readonly<Partial<CacheConfig>>>();
    expectTypeOf<ResolvedConfig>().toEqualTypeOf<Readonly<Required<ResolvedConfig>>>();
    expectTypeOf<Record<string, never>>().toExtend<CacheConfig>();
  });

  it("what was checked, and what was resolved from it, can be passed in again", () => {
    expectTypeOf<CheckedConfig>().toExtend<CacheConfig>();
    expectTypeOf(resolveConfig).returns.toEqualTypeOf<ResolvedConfig>();
  });

  it("each field has its documented type", () => {
    expectTypeOf<CacheConfig["backend"]>().toEqualTypeOf<Backend | undefined>();
    expectTypeOf<CacheConfig["metrics"]>().toEqualTypeOf<Collector | undefined>();
    expectTypeOf<CacheConfig["nearCache"]>().toEqualTypeOf<
      | boolean
      | {
          readonly maxEntries?: number;
          readonly maxBytes?: number;
          readonly values?: "copy" | "shared" | "frozen";
        }
      | undefined
    >();
    expectTypeOf<ResolvedConfig["nearCache"]>().toEqualTypeOf<
      | false
      | {
          readonly maxEntries: number;
          readonly maxBytes: number;
          readonly values: "copy" | "shared" | "frozen";
        }
    >();
    expectTypeOf<ResolvedConfig["circuitBreaker"]["resetTimeout"]>().toEqualTypeOf<number>();
    expectTypeOf<ResolvedConfig["serialization"]>().toEqualTypeOf<"msgpack" | "json">();
  });

  it("a collector's methods can be sync or async", () => {
    expectTypeOf<{
      increment(metric: string): Promise<void>;
      gauge(metric: string, value: number): void;
      histogram(metric: string, value: number, tags?: Readonly<Record<string, string>>): Promise<void>;
      timing(metric: string, value: number): void;
    }>().toExtend<Collector>();
  });

  it("a YAML file has the same fields in snake_case", () => {
    expectTypeOf<Wire<Omit<CacheConfig, "backend" | "metrics">>>().toHaveProperty("default_ttl");
    expectTypeOf<Wire<Required<Pick<CacheConfig, "circuitBreaker">>>>().toEqualTypeOf<{
      readonly circuit_breaker: { readonly failure_threshold?: number; readonly reset_timeout?: Duration };
    }>();
  });
});
