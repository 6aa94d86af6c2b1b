import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { Packr } from "msgpackr";
import { expect, test } from "vitest";
import { swapped } from "../../src/codec/binary-view.ts";
import { createCodec } from "../../src/codec/codec.ts";
import { anyJson } from "./arbitrary.ts";
import { difference } from "./exact.ts";

const codec = createCodec();
const peer = new Packr({ useRecords: false });
const hex = (value: unknown): string => Buffer.from(codec.encode(value).bytes).toString("hex");

/** What every MessagePack library supports: well-formed text, and no __proto__, which the peer renames. */
const isCommon = (value: unknown): boolean =>
  (JSON.stringify(value) as string & { isWellFormed(): boolean }).isWellFormed() &&
  !/\\ud[89a-f]/i.test(JSON.stringify(value)) &&
  !JSON.stringify(value).includes("__proto__");

test("another MessagePack library reads JSON-like values that we wrote", () => {
  fc.assert(
    fc.property(anyJson.filter(isCommon), (value) => {
      expect(difference(peer.unpack(codec.encode(value).bytes as Buffer), value)).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

test("we read JSON-like values that another MessagePack library wrote", () => {
  fc.assert(
    fc.property(anyJson.filter(isCommon), (value) => {
      expect(difference(codec.decode({ format: 0, bytes: peer.pack(value) }), value)).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

test.each<[value: unknown, bytes: string]>([
  [null, "c0"],
  [false, "c2"],
  [true, "c3"],
  [127, "7f"],
  [128, "cc80"],
  [256, "cd0100"],
  [65_536, "ce00010000"],
  [2 ** 32 - 1, "ceffffffff"],
  [2 ** 32, "ca4f800000"],
  [-1, "ff"],
  [-32, "e0"],
  [-33, "d0df"],
  [-129, "d1ff7f"],
  [-32_769, "d2ffff7fff"],
  [-(2 ** 31), "d280000000"],
  [-0, "ca80000000"],
  [0.5, "ca3f000000"],
  [0.1, "cb3fb999999999999a"],
  [1n, "d30000000000000001"],
  [2n ** 64n - 1n, "cfffffffffffffffff"],
  ["é", "a2c3a9"],
  [[1, "a"], "9201a161"],
  [{ a: [] }, "81a16190"],
  [Buffer.from([1]), "c40101"],
  [undefined, ""],
])("%s is written in the shortest standard form", (value, bytes) => {
  if (value === undefined) expect(hex([undefined])).toBe("91d40000");
  else expect(hex(value)).toBe(bytes);
});

test("headers of every length are written and read", () => {
  for (const count of [15, 16, 65_535, 65_536]) {
    const list = Array.from({ length: count }, (_, i) => i & 1);
    expect(JSON.stringify(codec.decode(codec.encode(list)))).toBe(JSON.stringify(list));
    const object = Object.fromEntries(list.map((bit, i) => [`k${i}`, bit]));
    expect(JSON.stringify(codec.decode(codec.encode([object, "after"])))).toBe(
      JSON.stringify([object, "after"]),
    );
    // toEqual takes seconds on 65,536 fields.
    expect(isDeepStrictEqual(peer.unpack(codec.encode(object).bytes as Buffer), object)).toBe(true);
  }
});

test("bytes are the same from any kind of array that holds them", () => {
  const { format, bytes } = codec.encode({ a: ["text", 1.5] });
  const inside = new Uint8Array(bytes.length + 7);
  inside.set(bytes, 5);
  expect(codec.decode({ format, bytes: inside.subarray(5, 5 + bytes.length) })).toEqual({ a: ["text", 1.5] });
});

test("a large value leaves nothing behind for the next one to see", () => {
  expect(codec.decode(codec.encode("x".repeat(3_000_000)))).toHaveLength(3_000_000);
  expect(hex([1])).toBe("9101");
});

test("on a big-endian machine the bytes of typed array elements are swapped", () => {
  expect([...swapped(Uint8Array.of(1, 2, 3, 4), 2)]).toEqual([2, 1, 4, 3]);
  expect([...swapped(Uint8Array.of(1, 2, 3, 4), 4)]).toEqual([4, 3, 2, 1]);
  expect([...swapped(Uint8Array.of(1, 2), 1)]).toEqual([1, 2]);
});
