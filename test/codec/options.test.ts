import { expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import type { CodecOptions } from "../../src/codec/options.ts";
import { ConfigError } from "../../src/core/errors.ts";

function configCode(options: unknown): [code: string, message: string] {
  try {
    createCodec(options as CodecOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return [(error as ConfigError).code, (error as ConfigError).message];
  }
  throw new Error("nothing was thrown");
}

test.each<[field: string, options: unknown]>([
  ["codec options", null],
  ["serialization", { serialization: "xml" }],
  ["compression", { compression: true }],
  ["compression.algorithm", { compression: { algorithm: "lzma" } }],
  ["compression.thresholdBytes", { compression: { thresholdBytes: -1 } }],
  ["compression.thresholdBytes", { compression: { thresholdBytes: 1.5 } }],
  ["limits", { limits: 5 }],
  ["limits.maxBytes", { limits: { maxBytes: 0 } }],
  ["limits.maxBytes", { limits: { maxBytes: "64" } }],
  ["limits.maxBytes", { limits: { maxBytes: Infinity } }],
  ["limits.maxDepth", { limits: { maxDepth: 0 } }],
  ["limits.maxDepth", { limits: { maxDepth: 1001 } }],
])("a bad %s is rejected by name: %j", (field, options) => {
  const [code, message] = configCode(options);
  expect(code).toBe("CONFIG_INVALID");
  expect(message.startsWith(`${field} must be`)).toBe(true);
});

test("an unknown field is rejected with the list of known fields", () => {
  const [code, message] = configCode({ compresion: false });
  expect(code).toBe("CONFIG_UNKNOWN_FIELD");
  expect(message).toContain("serialization, compression, limits");
  expect(configCode({ compression: { level: 3 } })[0]).toBe("CONFIG_UNKNOWN_FIELD");
  expect(configCode({ limits: { maxKeys: 3 } })[0]).toBe("CONFIG_UNKNOWN_FIELD");
});

test("without options payloads are MessagePack, not compressed", () => {
  expect(createCodec().encode("x".repeat(100_000)).format).toBe(0);
});

test("compression without further options is brotli from 1024 bytes on", () => {
  const codec = createCodec({ compression: {} });
  expect(codec.encode("x".repeat(1021)).format).toBe(0x20);
  expect(codec.encode("x".repeat(1020)).format).toBe(0);
});
