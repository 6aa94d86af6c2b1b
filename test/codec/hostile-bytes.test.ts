import { types } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import { CodecError } from "../../src/core/errors.ts";
import { anyValue } from "./arbitrary.ts";

const codec = createCodec();
const prototypesBefore = snapshotOfPrototypes();

function snapshotOfPrototypes(): string {
  return [Object, Array, Map, Set, Error, RegExp, Date, Buffer, Uint8Array]
    .map((type) => Reflect.ownKeys(type.prototype).map(String).join())
    .join(";");
}

/** The value, or the CodecError; anything else thrown fails the test. */
function outcome(format: number, bytes: Uint8Array): unknown {
  try {
    return codec.decode({ format, bytes });
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return error;
  }
}

function codeOf(hexBytes: string): string | undefined {
  const result = outcome(0, Buffer.from(hexBytes.replaceAll(" ", ""), "hex"));
  return result instanceof CodecError ? result.code : undefined;
}

/** Every object that decoding may create has the prototype of its kind. */
function expectOrdinary(value: unknown, depth = 0): void {
  if (typeof value !== "object" || value === null || depth > 20) return;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (Array.isArray(value)) expect(prototype).toBe(Array.prototype);
  else if (types.isMap(value)) expect(prototype).toBe(Map.prototype);
  else if (types.isSet(value)) expect(prototype).toBe(Set.prototype);
  else if (!ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Object]") {
    expect(prototype).toBe(Object.prototype);
  }
  for (const part of types.isMap(value) ? [...value.values()] : Object.values(value))
    expectOrdinary(part, depth + 1);
}

test("random bytes yield a value or a CodecError, in every format", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 0, max: 255 }), (bytes, format) => {
      expectOrdinary(outcome(format, bytes));
    }),
    { numRuns: 2000 },
  );
  expect(snapshotOfPrototypes()).toBe(prototypesBefore);
});

test("a payload with changed, missing or extra bytes yields a value or a CodecError", () => {
  const change = fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(
      anyValue,
      fc.array(change, { maxLength: 4 }),
      fc.nat(),
      fc.boolean(),
      (value, changes, cut, cutting) => {
        const { format, bytes } = codec.encode(value);
        const damaged = Buffer.from(bytes);
        for (const [place, byte] of changes) damaged[place % damaged.length] = byte;
        expectOrdinary(outcome(format, cutting ? damaged.subarray(0, cut % damaged.length) : damaged));
      },
    ),
    { numRuns: 600 },
  );
  expect(snapshotOfPrototypes()).toBe(prototypesBefore);
});

test("every proper prefix of a payload is rejected, and so is a payload with a trailing byte", () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      const { format, bytes } = codec.encode(value);
      const stride = Math.max(1, bytes.length >> 5);
      for (let length = 0; length < bytes.length; length += stride) {
        expect(outcome(format, bytes.subarray(0, length))).toMatchObject({ code: "FRAME_INVALID" });
      }
      expect(outcome(format, Buffer.concat([bytes, Buffer.from([0xc0])]))).toMatchObject({
        code: "FRAME_INVALID",
      });
    }),
    { numRuns: 200 },
  );
});

describe("claims beyond the available bytes are rejected before anything is allocated", () => {
  test.each([
    ["an array of 2^32 - 1", "dd ffffffff", "4294967295 parts"],
    ["a map of 2^32 - 1", "df ffffffff", "8589934590 parts"],
    ["an array in an array", "91 dc ffff", "65535 parts"],
    ["an extension of 2^32 - 1", "c9 ffffffff 05 80", "4294967295 bytes"],
    ["a Map of 2^32 - 1", "c9 00000005 05 df ffffffff", "8589934590 parts"],
    ["a Set of 2^32 - 1", "c9 00000005 06 dd ffffffff", "4294967295 parts"],
    ["an array with 2^32 - 1 holes and values", "c9 00000005 07 dd ffffffff", "4294967295 parts"],
    ["a string of 2^32 - 1", "db ffffffff", "ends in the middle"],
    ["bytes of 2^32 - 1", "c6 ffffffff", "ends in the middle"],
  ])("%s", (_, head, why) => {
    const bytes = Buffer.concat([Buffer.from(head.replaceAll(" ", ""), "hex"), Buffer.alloc(10_000, 0xc0)]);
    const before = process.memoryUsage();
    const result = outcome(0, bytes);
    const after = process.memoryUsage();
    expect(result).toMatchObject({ code: "FRAME_INVALID", message: expect.stringContaining(why) });
    expect(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(
      4_000_000,
    );
  });

  test("an array of holes costs nothing, whatever length it claims", () => {
    const before = process.memoryUsage().heapUsed;
    const value = outcome(0, Buffer.from("c70607 91 ce01ffffff".replaceAll(" ", ""), "hex"));
    expect(value).toHaveLength(0x1ffffff);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(4_000_000);
  });
});

test.each([
  ["nothing at all", ""],
  ["the reserved byte", "c1"],
  ["an object key that is a number", "81 01 02"],
  ["an object key that is a Date", "81 d703 0000000000000000 02"],
  ["a UTF-16 string of odd length", "c7 03 01 610061"],
  ["a bigint without digits", "d4 02 00"],
  ["a Date of two bytes", "d5 03 0000"],
  ["a RegExp that does not compile", "c7 04 04 92 a1 28 a0"],
  ["a RegExp with flags that do not exist", "c7 05 04 92 a1 61 a1 71"],
  ["a RegExp of three parts", "c7 04 04 93 a0 a0 a0"],
  ["a RegExp of numbers", "c7 03 04 92 01 02"],
  ["a Map without a map", "d4 05 90"],
  ["a Set without an array", "d4 06 80"],
  ["a Set shorter than its extension", "92 d5 06 90 c0"],
  ["a Set longer than its extension", "d4 06 91 c0"],
  ["an array with holes and no length", "d4 07 90"],
  ["an array with holes and an index beyond its length", "d6 07 93 01 01 c0"],
  ["an array with holes and an index twice", "c7 06 07 95 09 01 c0 01 c0"],
  ["an array with holes and a fractional length", "c7 06 07 91 ca3f000000"],
  ["an Error of two parts", "c7 03 08 92 a0 a0"],
  ["an Error whose name is a number", "d6 08 93 01 a0 a0"],
  ["a boxed null", "d4 09 c0"],
  ["a boxed Date", "c7 0a 09 d703 0000000000000000"],
  ["a Float64Array of five bytes", "c7 05 29 0000000000"],
])("%s is a damaged payload", (_, bytes) => {
  expect(codeOf(bytes)).toBe("FRAME_INVALID");
});

test("an extension of a later version is rejected as such", () => {
  expect(codeOf("d4 7f 00")).toBe("FRAME_VERSION");
});

test("endless nesting is rejected at the limit, not by the stack", () => {
  for (const byte of [0x91, 0x81]) {
    expect(outcome(0, Buffer.alloc(1_000_000, byte))).toBeInstanceOf(CodecError);
  }
  expect(outcome(0, Buffer.alloc(1_000_000, 0x91))).toMatchObject({ code: "VALUE_TOO_LARGE" });
  expect(outcome(1, Buffer.alloc(100_000, "["))).toBeInstanceOf(CodecError);
  expect(outcome(1, Buffer.from("[".repeat(5000) + "]".repeat(5000)))).toMatchObject({
    code: "VALUE_TOO_LARGE",
  });
});

test("a key seen before is not mistaken for another one", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom("a", "b", "é", "\u0000"), maxLength: 6 }), {
        maxLength: 30,
      }),
      (keys) => {
        const value = Object.fromEntries(keys.map((key, i) => [key, i]));
        expect(codec.decode(codec.encode(value))).toEqual(value);
      },
    ),
  );
});
