import { hash } from "node:crypto";
import { inspect, isDeepStrictEqual } from "node:util";
import vm from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";
import { canonicalText } from "../../src/functions/argument-encoding.ts";
import { argumentKeys, LONGEST_READABLE_KEY } from "../../src/functions/argument-key.ts";
import { codePoint } from "../support/code-point.ts";

const keyOf = argumentKeys("f");
const key = (...args: unknown[]): string => keyOf(args);

describe("readable keys", () => {
  it.each<[string, unknown[]]>([
    ["f()", []],
    ['f(1,"a")', [1, "a"]],
    ["f(undefined)", [undefined]],
    ["f(null,true,1n)", [null, true, 1n]],
    ["f(-0,0,NaN,-Infinity)", [-0, 0, Number.NaN, Number.NEGATIVE_INFINITY]],
    ['f({a:[2],b:1,"c-d":{}})', [{ b: 1, a: [2], "c-d": {} }]],
    ["f(Date(5),Date(NaN))", [new Date(5), new Date(Number.NaN)]],
    ['f(RegExp("a\\\\/\\"","gi"))', [/a\/"/gi]],
    [
      'f(Map{"b"=>1,{a:1}=>2})',
      [
        new Map<unknown, unknown>([
          ["b", 1],
          [{ a: 1 }, 2],
        ]),
      ],
    ],
    ['f(Set{"a","b"})', [new Set(["b", "a"])]],
    [
      "f(Uint8Array(_w),Buffer(_w),ArrayBuffer(AA))",
      [Uint8Array.of(255), Buffer.of(255), new ArrayBuffer(1)],
    ],
    // biome-ignore lint/suspicious/noSparseArray: tests a hole
    ["f([empty,1])", [[, 1]]],
    ['f(URL("https://x.test/a"))', [new URL("https://x.test/a")]],
    ['f("say \\"\\ud800\\"\\n")', ['say "\ud800"\n']],
  ])("such as %s", (expected, args) => {
    expect(key(...args)).toBe(expected);
  });

  it("are kept up to the limit, and become the name with a sha-256 digest beyond it", () => {
    const longest = "x".repeat(LONGEST_READABLE_KEY - 'f("")'.length);
    expect(key(longest)).toBe(`f("${longest}")`);
    expect(key(`${longest}x`)).toMatch(/^f#[\w-]{43}$/);
    expect(key(`${longest}x`)).toBe(key(`${longest}x`));
    expect(key(`${longest}x`)).not.toBe(key(`${longest}y`));
    expect(key("x".repeat(100_000), 1)).not.toBe(key("x".repeat(100_000), 2));
  });

  it("of one number or one string have the same form as those of several, whatever its content", () => {
    const text = fc.string({ unit: codePoint, maxLength: 130 });
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.integer(), text, fc.string({ maxLength: 70 })), (only) => {
        const made = `f(${canonicalText(only)})`;
        expect(key(only)).toBe(
          made.length <= LONGEST_READABLE_KEY ? made : `f#${hash("sha256", made, "base64url")}`,
        );
      }),
    );
  });

  it("of a long name are digests even for one number, and depend on the name", () => {
    const name = "n".repeat(LONGEST_READABLE_KEY);
    const other = "m".repeat(LONGEST_READABLE_KEY);
    expect(argumentKeys(name)([1])).toMatch(/^n+#[\w-]{43}$/);
    expect(argumentKeys(name)([1]).slice(-43)).not.toBe(argumentKeys(other)([1]).slice(-43));
  });
});

/** Values that look alike to a careless encoder. */
const lookalikes: unknown[][] = [
  [],
  [undefined],
  [null],
  [undefined, undefined],
  [1],
  ["1"],
  [[1]],
  [["1"]],
  [[[1]]],
  [1n],
  ["1n"],
  [true],
  ["true"],
  [0],
  [-0],
  [Number.NaN],
  ["NaN"],
  [{}],
  [[]],
  [new Map()],
  [new Set()],
  [new Set([1])],
  [new Set([2])],
  [[undefined]],
  // biome-ignore lint/suspicious/noSparseArray: tests a hole
  [[,]],
  [{ a: undefined }],
  [{ a: 1, b: 2 }],
  [{ a: [1, { b: 2 }] }],
  ["a", "b"],
  ["a,b"],
  ['a","b'],
  [["a"], "b"],
  [new Date(0)],
  [0, 0],
  ["1970-01-01T00:00:00.000Z"],
  [/a/],
  ["/a/"],
  [/a/g],
  [new Uint8Array(2)],
  [new Uint16Array(1)],
  [Buffer.alloc(2)],
  [new ArrayBuffer(2)],
  [new DataView(new ArrayBuffer(2))],
  [new Uint8ClampedArray(2)],
  [new Map([[1, 2]])],
  [new Map([["1", 2]])],
  [new Map([[{ a: 1 }, 2]])],
  [{ 1: 2 }],
  [[[1, 2]]],
  ["\ud800"],
  ["\\ud800"],
  ["\udfff"],
  ["\ufffd"],
  ["é"],
  ["e\u0301"],
  [""],
  [" "],
  ["", ""],
  [new URL("a:b")],
  ["a:b"],
  [JSON.parse('{"__proto__":1}')],
  [{ constructor: 1 }],
];

describe("different argument lists", () => {
  it("that look alike give different keys, even when they are long", () => {
    const all = lookalikes.flatMap((args) => [key(...args), key(...args, "x".repeat(200))]);
    expect(new Set(all).size).toBe(2 * lookalikes.length);
  });

  it("never share a key, and equal ones always do, by deep strict equality", () => {
    const scalar = fc.oneof(
      fc.integer({ min: -2, max: 2 }),
      fc.double(),
      fc.string({ unit: codePoint, maxLength: 3 }),
      fc.constantFrom<unknown>(
        "1",
        "null",
        "a,b",
        '"',
        "\ud800",
        -0,
        1n,
        0n,
        null,
        undefined,
        true,
        false,
        Number.NaN,
      ),
      fc.constantFrom<unknown>(new Date(0), new Date(1), /a/, /a/g),
      fc.uint8Array({ maxLength: 2 }),
      fc.uint16Array({ maxLength: 1 }),
    );
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3, withCrossShrink: true },
        scalar,
        fc.array(tie("value"), { maxLength: 3 }),
        fc.sparseArray(tie("value"), { maxLength: 3, maxNumElements: 2 }),
        fc.dictionary(fc.constantFrom("a", "b", "__proto__", "a b", "1"), tie("value"), {
          maxKeys: 3,
          noNullPrototype: true,
        }),
        fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 2 }).map((entries) => new Map(entries)),
        fc.array(tie("value"), { maxLength: 3 }).map((members) => new Set(members)),
      ),
    }));
    const lists = fc.array(fc.array(value, { maxLength: 2 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(lists, (all) => {
        for (const left of all) {
          for (const right of [...all, structuredClone(left)]) {
            if ((key(...left) === key(...right)) !== isDeepStrictEqual(left, right)) {
              expect.fail(
                `${inspect(left)} and ${inspect(right)} have the keys ${key(...left)} and ${key(...right)}`,
              );
            }
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("give different keys under different names, whatever the names contain", () => {
    const text = fc.string({ unit: fc.constantFrom(..."f(1)\"',#:a"), maxLength: 8 });
    const call = fc.tuple(text, fc.array(fc.oneof(text, fc.integer({ min: 0, max: 2 })), { maxLength: 2 }));
    fc.assert(
      fc.property(call, call, ([name, args], [otherName, otherArgs]) => {
        const isSame = isDeepStrictEqual([name, args], [otherName, otherArgs]);
        expect(argumentKeys(name)(args) === argumentKeys(otherName)(otherArgs)).toBe(isSame);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("equal argument lists", () => {
  it("give one key whatever the order of object keys, Map entries and Set members", () => {
    const shuffled = fc
      .uniqueArray(fc.tuple(fc.string({ maxLength: 4 }), fc.integer()), {
        selector: ([name]) => name,
        maxLength: 6,
      })
      .chain((entries) =>
        fc.tuple(
          fc.constant(entries),
          fc.shuffledSubarray(entries, { minLength: entries.length, maxLength: entries.length }),
        ),
      );
    fc.assert(
      fc.property(shuffled, ([entries, otherOrder]) => {
        const forms = (of: [string, number][]): unknown[] => [
          { deep: [Object.fromEntries(of)] },
          new Map(of),
          new Set(of.map(([name]) => name)),
        ];
        expect(key(...forms(entries))).toBe(key(...forms(otherOrder)));
      }),
    );
  });

  it("give one key if an object is shared, has no prototype or comes from another realm", () => {
    const shared = { a: 1 };
    expect(key(shared, [shared])).toBe(key({ a: 1 }, [{ a: 1 }]));
    expect(key(Object.assign(Object.create(null), shared))).toBe(key(shared));
    const foreign = vm.runInNewContext(
      "[{ a: 1 }, [1], new Map([[1, 2]]), new Date(0), new Uint8Array(2)]",
    ) as unknown[];
    expect(key(...foreign)).toBe(key({ a: 1 }, [1], new Map([[1, 2]]), new Date(0), new Uint8Array(2)));
  });

  it("differ if the lastIndex of a regular expression does", () => {
    const moved = /a/g;
    moved.lastIndex = 1;
    expect(key(moved)).not.toBe(key(/a/g));
  });

  it("keep their keys across many other calls, including zeroes of both signs", () => {
    const inputs: (number | string)[] = [
      0,
      -0,
      0.5,
      1.5,
      1e21,
      ...Array.from({ length: 4000 }, (_, i) => (i % 2 ? i : `s${i}`)),
    ];
    const expected = inputs.map((input) => argumentKeys("f")([input]));
    expect(inputs.map((input) => key(input))).toEqual(expected);
    expect(inputs.map((input) => key(input))).toEqual(expected);
    expect(new Set(expected).size).toBe(inputs.length);
  });
});

describe("a number and the string of its digits", () => {
  it("have different keys when used alternately", () => {
    for (let n = 1; n <= 20_000; n++) {
      if (key(n) !== `f(${n})` || key(`${n}`) !== `f("${n}")` || key(n) !== `f(${n})`)
        expect.fail(`they meet at ${n}`);
    }
  });
});

describe("an argument that cannot be encoded", () => {
  class Money {
    amount = 1;
    toJSON(): number {
      return 1;
    }
  }
  const cyclic: { self?: unknown } = {};
  cyclic.self = { again: cyclic };
  let deep: unknown = 1;
  for (let i = 0; i < 300; i++) deep = [deep];
  const doubled = (pair: (part: unknown) => unknown): unknown => {
    let value: unknown = ["leaf"];
    for (let level = 0; level < 40; level++) value = pair(value);
    return value;
  };

  it.each<[string, unknown, string]>([
    ["a function", { filter: [1, () => 1] }, "f(): argument 2 at .filter[1] is a function"],
    ["a symbol", Symbol("s"), "f(): argument 2 is a symbol"],
    ["a promise", { "a b": Promise.resolve() }, 'f(): argument 2 at ["a b"] is a promise (await it first)'],
    ["a class instance, even with toJSON", new Money(), "f(): argument 2 is an instance of Money"],
    [
      "a subclass of a known class",
      new (class Day extends Date {})(),
      "f(): argument 2 is an instance of Day",
    ],
    ["a subclass of Array", new (class List extends Array {})(), "f(): argument 2 is an instance of List"],
    ["a nameless class", new (class {})(), "f(): argument 2 is an instance of a nameless class"],
    ["a WeakMap", new WeakMap(), "f(): argument 2 is an instance of WeakMap"],
    ["an error", new Error("x"), "f(): argument 2 is an instance of Error"],
    ["a boxed number", Object(1), "f(): argument 2 is an instance of Number"],
    ["something inside a Map", new Map([[1, Symbol.iterator]]), "f(): argument 2 at [0] is a symbol"],
    [
      "a symbol as a key",
      { a: { [Symbol("s")]: 1 } },
      "f(): argument 2 at .a is an object with a symbol as a key (Symbol(s))",
    ],
    [
      "a property of an array",
      Object.assign([1], { index: 0 }),
      'f(): argument 2 is an array with the extra property "index"',
    ],
    [
      "a property of a Date",
      Object.assign(new Date(0), { zone: 1 }),
      'f(): argument 2 is a Date with the extra property "zone"',
    ],
    ["a cycle", cyclic, "f(): argument 2 at .self.again is a reference to an object that contains it"],
  ])("is refused for %s", (_what, value, message) => {
    expect(() => key(1, value)).toThrow(ConfigError);
    expect(() => key(1, value)).toThrow(expect.objectContaining({ code: "ARGUMENT_INVALID" }));
    expect(() => key(1, value)).toThrow(`${message}, which cannot be part of a cache key`);
  });

  it("is refused beyond 200 levels instead of overflowing the stack", () => {
    expect(() => key(deep)).toThrow("nested more than 200 levels deep");
  });

  it.each<[string, () => unknown]>([
    ["lists", () => doubled((part) => [part, part])],
    ["objects", () => doubled((part) => ({ left: part, right: part }))],
    ["Maps", () => doubled((part) => new Map([[1, part]]).set(2, part))],
    ["Sets", () => doubled((part) => new Set([part, [part]]))],
    ["long lists", () => doubled((part) => [...new Array(1_000).fill(1), part, part])],
    ["a long text many times", () => new Array(1_000).fill("x".repeat(100_000))],
    ["bytes many times", () => new Array(1_000).fill(Buffer.alloc(100_000))],
    ["a list of almost nothing", () => Object.assign([], { length: 4_000_000_000 })],
  ])("is refused soon for what stands for more than memory holds: %s", (_, make) => {
    expect(() => key(make())).toThrow(
      "f(): argument 1 is too large, which cannot be part of a cache key; expected plain data.",
    );
  });

  it("is never one that is merely large", () => {
    expect(key(Array.from({ length: 50_000 }, (_, id) => ({ id })))).toMatch(/^f#/);
    expect(key("x".repeat(1_000_000))).toMatch(/^f#/);
  });

  it("rethrows the error of a getter unchanged", () => {
    const thrown = new RangeError("mine");
    const value = {
      get broken(): never {
        throw thrown;
      },
    };
    expect(() => key(value)).toThrow(thrown);
  });
});
