import fc from "fast-check";
import { expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import { anyValue } from "./arbitrary.ts";

const { sizeOf } = createCodec();

test("the size of any value is a positive finite number", () => {
  fc.assert(
    fc.property(fc.oneof(anyValue, fc.constant(undefined)), (value) => {
      const size = sizeOf(value);
      expect(size).toBeGreaterThan(0);
      expect(Number.isFinite(size)).toBe(true);
    }),
  );
});

test("text, bytes and numbers count by their length", () => {
  expect(sizeOf("x".repeat(10_000))).toBeGreaterThan(10_000);
  expect(sizeOf("x".repeat(10_000))).toBeLessThan(21_000);
  expect(sizeOf(Buffer.alloc(5000))).toBeGreaterThan(5000);
  expect(sizeOf(new Float64Array(1000).buffer)).toBeGreaterThan(8000);
  expect(sizeOf(2n ** 80_000n)).toBeGreaterThan(10_000);
});

test.each<[kind: string, make: (count: number) => unknown]>([
  ["array", (count) => Array.from({ length: count }, (_, i) => ({ id: i, text: "x".repeat(50) }))],
  [
    "object",
    (count) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "x".repeat(50)])),
  ],
  ["Map", (count) => new Map(Array.from({ length: count }, (_, i) => [i, "x".repeat(50)]))],
  ["Set", (count) => new Set(Array.from({ length: count }, (_, i) => `${i}${"x".repeat(50)}`))],
])("a large %s is judged by a sample of its parts", (_, make) => {
  const small = sizeOf(make(1000));
  const large = sizeOf(make(20_000));
  expect(large / small).toBeGreaterThan(15);
  expect(large / small).toBeLessThan(25);
});

test("memory really taken is within a factor of three", () => {
  const make = (): unknown =>
    Array.from({ length: 20_000 }, (_, i) => ({ id: i, name: `name ${i}`, tags: [i, i + 1] }));
  const before = process.memoryUsage().heapUsed;
  const value = make();
  const taken = process.memoryUsage().heapUsed - before;
  // A collection between the two readings would make the difference meaningless.
  if (taken < 1_000_000) return;
  expect(sizeOf(value)).toBeGreaterThan(taken / 3);
  expect(sizeOf(value)).toBeLessThan(taken * 3);
});

test("cycles, shared parts, functions, throwing accessors and revoked Proxies do not disturb it", () => {
  const cyclic: Record<string, unknown> = {};
  for (let i = 0; i < 50; i++) cyclic[`k${i}`] = cyclic;
  let shared: unknown = {};
  for (let i = 0; i < 60; i++) shared = [shared, shared];
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const throwing = {
    get boom(): never {
      throw new Error("boom");
    },
  };
  const sparse: unknown[] = [];
  sparse[4_000_000_000] = 1;
  for (const value of [cyclic, shared, revoked.proxy, throwing, () => 1, Symbol("s"), sparse]) {
    expect(sizeOf(value)).toBeGreaterThan(0);
    expect(sizeOf(value)).toBeLessThan(1e9);
  }
});
