import fc from "fast-check";
import { expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import { CodecError } from "../../src/core/errors.ts";
import { anyJson, anyValue } from "./arbitrary.ts";
import { difference } from "./exact.ts";

const JSON_FORMAT = 1;
const codec = createCodec({ serialization: "json" });

test("a value that JSON represents exactly is stored as its JSON text", () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      const payload = codec.encode(value);
      expect(payload.format).toBe(JSON_FORMAT);
      expect(Buffer.from(payload.bytes).toString()).toBe(JSON.stringify(value));
      expect(difference(codec.decode(payload), value)).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("any value is restored exactly, whatever JSON would have made of it", () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      expect(difference(codec.decode(codec.encode(value)), value)).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test.each<[what: string, value: unknown]>([
  ["undefined property", { a: undefined }],
  ["-0", [-0]],
  ["NaN", { n: NaN }],
  ["Date", new Date(0)],
  ["bigint", 1n],
  ["hole", new Array(1)],
  ["Map", { m: new Map() }],
  ["boxed number", [Object(1)]],
])("a value with a %s is stored as MessagePack instead", (_, value) => {
  expect(codec.encode(value).format).not.toBe(JSON_FORMAT);
});

test("toJSON is never called: the value's own properties are stored", () => {
  class Money {
    cents = 5;
    toJSON(): string {
      return "5 cents";
    }
  }
  expect(codec.decode(codec.encode(new Money()))).toEqual({ cents: 5 });
});

test("text that is not JSON is a damaged payload", () => {
  expect(() => codec.decode({ format: JSON_FORMAT, bytes: Buffer.from("{") })).toThrow(CodecError);
  expect(() => codec.decode({ format: JSON_FORMAT, bytes: Buffer.from("{") })).toThrow(/not JSON/);
});

test("a codec reads what a codec of the other serialization wrote", () => {
  const other = createCodec();
  expect(other.decode(codec.encode({ a: 1 }))).toEqual({ a: 1 });
  expect(codec.decode(other.encode({ a: 1 }))).toEqual({ a: 1 });
});
