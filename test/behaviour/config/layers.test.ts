import { describe, expect, it } from "vitest";
import { layerConfig, resolveConfig } from "../../../src/config/resolve.ts";
import { fieldNames } from "../../../src/config/schema.ts";
import { configErrorOf } from "../../config/thrown.ts";

describe("layerConfig", () => {
  it("a flag beats the environment, the environment beats the file, the file beats the default", () => {
    const { config, sources } = layerConfig({
      flags: { defaultTtl: 1 },
      env: { defaultTtl: 2, poolSize: 2 },
      file: { defaultTtl: 3, poolSize: 3, keyPrefix: "file" },
    });
    expect(config).toEqual(resolveConfig({ defaultTtl: 1, poolSize: 2, keyPrefix: "file" }));
    expect(sources).toMatchObject({
      defaultTtl: "flag",
      poolSize: "env",
      keyPrefix: "file",
      ttlJitter: "default",
    });
  });

  it("every field has a source", () => {
    const { sources } = layerConfig({});
    expect(sources).toEqual(Object.fromEntries(fieldNames().map((field) => [field, "default"])));
  });

  it("a value equal to the default keeps the source that gave it", () => {
    expect(layerConfig({ env: { enableFuzzy: false } }).sources.enableFuzzy).toBe("env");
  });

  it("a field with nested fields is taken whole from one source", () => {
    const { config, sources } = layerConfig({
      env: { circuitBreaker: { failureThreshold: 9 } },
      file: { circuitBreaker: { resetTimeout: 99 } },
    });
    expect(config.circuitBreaker).toEqual({ failureThreshold: 9, resetTimeout: 30 });
    expect(sources.circuitBreaker).toBe("env");
  });

  it("a field given as undefined does not hide the next source's value", () => {
    const flags = { poolSize: undefined } as object;
    expect(layerConfig({ flags, file: { poolSize: 3 } })).toMatchObject({
      config: { poolSize: 3 },
      sources: { poolSize: "file" },
    });
  });

  it("a bad value is refused wherever it comes from", () => {
    expect(configErrorOf(() => layerConfig({ env: { poolSize: 0 } })).message).toMatch(/^poolSize must be/);
  });
});
