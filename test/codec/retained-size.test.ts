import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
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
])("a large %s weighs as much as its parts", (_, make) => {
  const small = sizeOf(make(1000));
  const large = sizeOf(make(20_000));
  expect(large / small).toBeGreaterThan(15);
  expect(large / small).toBeLessThan(25);
});

test("the memory actually used is within a factor of three", () => {
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

test("cycles, shared parts, functions, throwing accessors and revoked Proxies are handled", () => {
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

const KILOBYTE = "x".repeat(1_000);

/** Containers of `count` parts, of which every `every`th is large: none of them may be missed. */
const containers: readonly [string, (parts: readonly unknown[]) => unknown][] = [
  ["fields", (parts) => Object.fromEntries(parts.map((part, at) => [`k${at}`, part]))],
  ["an array", (parts) => [...parts]],
  ["a Map", (parts) => new Map(parts.map((part, at) => [at, part]))],
  ["a Set", (parts) => new Set(parts.map((part, at) => (typeof part === "string" ? part + at : [part])))],
];
const large: readonly [string, unknown][] = [
  ["text", KILOBYTE],
  ["bytes", Buffer.from(KILOBYTE)],
  ["an object that holds a text", { deep: [{ text: KILOBYTE }] }],
  ["a String object", Object(KILOBYTE)],
  ["a RegExp", new RegExp(KILOBYTE)],
];

describe("the large parts of a value are all found", () => {
  for (const [container, contain] of containers) {
    test.each(large)(`among small ones in ${container}: %s`, (_, part) => {
      for (const [count, every] of [
        [40, 40],
        [63, 2],
        [200, 7],
        [1_000, 31],
      ] as const) {
        for (const first of [0, 1, 4, every - 1]) {
          const parts = Array.from({ length: count }, (_, at) => (at % every === first ? part : 0));
          const many = parts.filter((each) => each !== 0).length;
          const size = sizeOf(contain(parts));
          expect(size).toBeGreaterThan(many * 1_000);
          expect(size).toBeLessThan(many * 1_500 + count * 200);
        }
      }
    });
  }

  test("even a thousand levels down, and in the name of a field", () => {
    let deep: unknown = KILOBYTE.repeat(100);
    for (let level = 0; level < 900; level++) deep = { deep };
    expect(sizeOf(deep)).toBeGreaterThan(100_000);
    expect(sizeOf({ [KILOBYTE]: 1 })).toBeGreaterThan(1_000);
    expect(
      sizeOf(Object.fromEntries(Array.from({ length: 40 }, (_, at) => [KILOBYTE + at, 1]))),
    ).toBeGreaterThan(40_000);
  });

  test("even at the far end of a sparse array, and the memory behind a small view", () => {
    const sparse: unknown[] = [];
    sparse[4_000_000_000] = KILOBYTE;
    expect(sizeOf(sparse)).toBeGreaterThan(1_000);
    expect(sizeOf(new Uint8Array(new ArrayBuffer(100_000), 0, 1))).toBeGreaterThan(100_000);
    expect(sizeOf(Buffer.from("x"))).toBeLessThan(200);
  });
});

describe("text", () => {
  test("takes two bytes per character if one of them is beyond Latin-1", () => {
    for (const [text, bytes] of [
      ["x".repeat(1_000), 1_000],
      ["é".repeat(1_000), 1_000],
      ["€".repeat(1_000), 2_000],
      [`${"x".repeat(999)}€`, 2_000],
      [`€${"x".repeat(999)}`, 2_000],
      ["€uro", 8],
    ] as const) {
      expect(sizeOf(text) - bytes).toBeGreaterThanOrEqual(16);
      expect(sizeOf(text) - bytes).toBeLessThan(40);
    }
  });
});

describe("a value of very many parts", () => {
  /**
   * The mean of 30 samples, each from other positions; fresh modules make the positions the same in every run. Only the first
   * also tries to weigh every part and lists the keys, which takes many times as long as the sample itself.
   */
  const meanSize = async (value: object): Promise<number> => {
    vi.resetModules();
    const fresh = await import("../../src/codec/retained-size.ts");
    const keyLists = new Map<object, readonly string[]>();
    let total = fresh.sizeOf(value);
    for (let time = 1; time < 30; time++) total += fresh.sampledSizeOf(value, keyLists);
    return total / 30;
  };

  test.each<[string, (parts: string[]) => unknown]>([
    ["texts", (parts) => parts],
    ["objects", (parts) => parts.map((text) => ({ text }))],
    ["fields", (parts) => Object.fromEntries(parts.map((text, at) => [`k${at}`, { text }]))],
    ["a Map", (parts) => new Map(parts.map((text, at) => [at, { text }]))],
  ])("is estimated fairly whatever the order of its %s", async (_, make) => {
    const count = 40_000;
    const light = sizeOf(make(new Array(1_000).fill(""))) / 1_000;
    for (const isHeavy of [(at: number) => at >= count / 2, (at: number) => at % 2 === 0]) {
      // More references to it add no weight, but there are more than can be followed one by one.
      const value = make(Array.from({ length: count }, (_, at) => (isHeavy(at) ? KILOBYTE : "")));
      const mean = await meanSize([value, value, value]);
      const expected = count * (light + 500);
      expect(mean / expected).toBeGreaterThan(0.7);
      expect(mean / expected).toBeLessThan(1.3);
    }
  });

  test("whose parts refer to few objects weighs as much as those, not as all references would", () => {
    const list = Array.from({ length: 150_000 }, (_, at) => at);
    expect(sizeOf(new Array(20_000).fill(list))).toBeGreaterThan(150_000 * 8);
    expect(sizeOf(new Array(20_000).fill(list))).toBeLessThan(150_000 * 8 * 20);
    let shared: unknown = { text: KILOBYTE };
    for (let i = 0; i < 60; i++) shared = [shared, shared];
    expect(sizeOf(shared)).toBeGreaterThan(1_000);
    expect(sizeOf(shared)).toBeLessThan(100_000);
  });

  test("is weighed with a bounded number of property reads", () => {
    let looks = 0;
    const part = {
      get text() {
        looks++;
        return "x";
      },
    };
    const parts = Array.from({ length: 1_000 }, () =>
      Object.create(null, Object.getOwnPropertyDescriptors(part)),
    );
    sizeOf(Array.from({ length: 1_000 }, () => [...parts]));
    expect(looks).toBeLessThan(250_000);
  });
});
