import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import type { Payload } from "../../src/core/record.ts";
import { anyJson, anyValue, objectOf } from "./arbitrary.ts";
import { difference } from "./exact.ts";

const codec = createCodec({ slices: true });
const throughBytes = (value: unknown): unknown => codec.decode(codec.encode(value));

function expectExact(actual: unknown, expected: unknown): void {
  expect(difference(actual, expected)).toBeUndefined();
}

/** The two ways a value can be returned. */
const WAYS: [name: string, take: (value: unknown) => unknown][] = [
  ["decode(encode(value))", throughBytes],
  ["copy(value)", (value) => codec.copy(value)],
  ["copyTrusted(copy(value))", (value) => codec.copyTrusted(codec.copy(value))],
];

test("payloads stay as they were while others are encoded, of any size and from within accessors", () => {
  const sizes = [0, 1, 100, 4_090, 4_100, 70_000, 1_200_000, 5, 20_000, 3];
  const values = Array.from({ length: 60 }, (_, at) => ({
    at,
    text: "é".repeat(sizes[at % sizes.length] ?? 0),
  }));
  const nested: { readonly value: unknown; readonly payload: Payload }[] = [];
  const encoded = values.map((value) => {
    const reading = {
      ...value,
      get inner() {
        const inner = { of: value.at };
        nested.push({ value: inner, payload: codec.encode(inner) });
        return value.at;
      },
    };
    return { value: { ...value, inner: value.at }, payload: codec.encode(reading) };
  });
  for (const { value, payload } of [...encoded, ...nested]) {
    expectExact(codec.decode(payload), value);
    expectExact(codec.decode({ format: payload.format, bytes: payload.bytes }), value);
  }
});

describe.each(WAYS)("%s", (_, take) => {
  test("restores any supported value exactly", () => {
    fc.assert(
      fc.property(anyValue, (value) => expectExact(take(value), value)),
      { numRuns: 400 },
    );
  });

  test("restores primitives unchanged, each with its own type", () => {
    for (const value of [null, true, false, 0, -0, NaN, -Infinity, 1.1, 5e-324, "", "1", 1n, -(2n ** 200n)]) {
      expectExact(take(value), value);
    }
  });

  test.each([31, 32, 63, 64, 65, 255, 256, 4095, 4097, 65_535, 65_536, 100_000])(
    "restores strings of %i characters of one, two and three bytes",
    (length) => {
      for (const unit of ["a", "é", "€"]) expectExact(take(unit.repeat(length)), unit.repeat(length));
      expectExact(take(`${"a".repeat(length - 1)}é`), `${"a".repeat(length - 1)}é`);
    },
  );

  test.each([0, 15, 16, 17, 300])("restores containers of %i parts", (count) => {
    const numbers = Array.from({ length: count }, (_unused, i) => i * 3);
    expectExact(take(numbers), numbers);
    const object = Object.fromEntries(numbers.map((number) => [`k${number}`, number]));
    expectExact(take({ before: 1, object, after: 2 }), { before: 1, object, after: 2 });
    expectExact(take(new Map(Object.entries(object))), new Map(Object.entries(object)));
    expectExact(take(new Set(numbers)), new Set(numbers));
    expectExact(take(Buffer.alloc(count, 7)), Buffer.alloc(count, 7));
    expectExact(take(new Uint8Array(count)), new Uint8Array(count));
  });

  test("keeps lone surrogates, in values and in keys", () => {
    const value = { "\udfff key": "left \ud800 right", ok: "\ud83d\ude00" };
    expectExact(take(value), value);
  });

  test("keeps holes as holes and undefined as undefined", () => {
    // biome-ignore lint/suspicious/noSparseArray: the hole is the point
    const value = [1, , undefined, 3, ,];
    const back = take(value) as unknown[];
    expect(Object.keys(back)).toEqual(["0", "2", "3"]);
    expect(back).toHaveLength(5);
    expect(Object.keys(take({ a: undefined }) as object)).toEqual(["a"]);
    expect((take(new Map([["a", undefined]])) as Map<string, unknown>).has("a")).toBe(true);
  });

  test("keeps a sparse array of any length without paying for its holes", () => {
    const value: unknown[] = [];
    value[30_000_000] = "far";
    value[4_000_000_000] = "farther";
    const before = process.memoryUsage().heapUsed;
    const back = take(value) as unknown[];
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
    expect(back.length).toBe(4_000_000_001);
    expect(Object.entries(back)).toEqual(Object.entries(value));
  });

  test("keeps a __proto__ key as an own property and touches no prototype", () => {
    const value = objectOf([["__proto__", { polluted: true }]]);
    const back = take(value) as Record<string, unknown>;
    expect(Object.getPrototypeOf(back)).toBe(Object.prototype);
    expect(Object.keys(back)).toEqual(["__proto__"]);
    expect("polluted" in back).toBe(false);
    expectExact(back, value);
  });

  test("keeps the order of keys, of maps and of sets", () => {
    const value = {
      z: 1,
      a: 2,
      m: new Map([
        ["z", 1],
        ["a", 2],
      ]),
      s: new Set(["z", "a"]),
    };
    const back = take(value) as typeof value;
    expect(Object.keys(back)).toEqual(["z", "a", "m", "s"]);
    expect([...back.m.keys()]).toEqual(["z", "a"]);
    expect([...back.s]).toEqual(["z", "a"]);
  });

  test("restores class instances and objects without prototype as plain objects of their own properties", () => {
    class Point {
      x = 1;
      #hidden = 2;
      get sum(): number {
        return this.x + this.#hidden;
      }
    }
    expectExact(take(new Point()), { x: 1 });
    function Old(this: { y: number }): void {
      this.y = 1;
    }
    Old.prototype.inherited = 3;
    expectExact(take(Reflect.construct(Old, [])), { y: 1 });
    expectExact(take(Object.assign(Object.create(null), { a: 1 })), { a: 1 });
  });

  test("reads accessors and Proxies once, and omits symbol keys and non-enumerable properties", () => {
    let reads = 0;
    const value = {
      get counted() {
        return ++reads;
      },
      [Symbol("unseen")]: 1,
    };
    Object.defineProperty(value, "hidden", { value: 1, enumerable: false });
    expectExact(take(value), { counted: 1 });
    expectExact(take(new Proxy({ a: [1] }, {})), { a: [1] });
    expectExact(take(new Proxy([1, 2], {})), [1, 2]);
  });

  test("restores subclasses of arrays, maps, sets, dates and typed arrays as the class they extend", () => {
    class List extends Array {}
    class Index extends Map<string, number> {
      override get [Symbol.toStringTag](): string {
        return "Index";
      }
      override forEach(): never {
        throw new Error("not called");
      }
    }
    class Moment extends Date {}
    class Bytes extends Uint8Array {}
    expectExact(take(List.from([1, 2])), [1, 2]);
    expectExact(take(new Index([["a", 1]])), new Map([["a", 1]]));
    expectExact(take(new Moment(5)), new Date(5));
    expectExact(take(new Bytes([1, 2])), new Uint8Array([1, 2]));
  });

  test("restores boxed primitives by their content, whatever they claim to be", () => {
    const disguised = Object.assign(Object(5) as object, { valueOf: () => 6 });
    const back = take([disguised, Object("text"), Object(false), Object(7n)]) as object[];
    expect(back.map((boxed) => typeof boxed)).toEqual(["object", "object", "object", "object"]);
    expect(back.map((boxed) => boxed.valueOf())).toEqual([5, "text", false, 7n]);
  });

  test("gives a view its own memory, aligned and no larger than necessary", () => {
    const chunk = new ArrayBuffer(1000);
    const back = take({ odd: "x", view: new Float64Array(chunk, 8, 2), part: Buffer.from(chunk, 3, 4) }) as {
      view: Float64Array;
      part: Buffer;
    };
    expect(back.view.buffer.byteLength).toBe(16);
    expect(back.part.buffer.byteLength).toBe(4);
    expect(Buffer.isBuffer(back.part)).toBe(true);
  });

  test("copies what is referenced twice", () => {
    const shared = { n: 1 };
    const back = take({ a: shared, b: shared }) as { a: object; b: object };
    expectExact(back, { a: { n: 1 }, b: { n: 1 } });
    expect(back.a).not.toBe(back.b);
  });

  test("keeps name, message, stack and cause of errors", () => {
    class NotFound extends Error {
      override name = "NotFound";
    }
    const value = new NotFound("gone", { cause: new TypeError("deep", { cause: { code: 1 } }) });
    const back = take(value) as Error;
    expect(back).toBeInstanceOf(Error);
    expect(back.name).toBe("NotFound");
    expect(back.stack).toBe(value.stack);
    expect(back.cause).toBeInstanceOf(TypeError);
    expectExact((back.cause as Error).cause, { code: 1 });
    expect(Object.keys(back)).toEqual([]);
    expect(Object.hasOwn(take(new Error()) as object, "message")).toBe(false);
  });

  test("is not misled by enumerable properties on Object.prototype", () => {
    const prototype = Object.prototype as unknown as Record<string, unknown>;
    prototype.polluted = { by: "somebody" };
    try {
      expect(Object.keys(take({ a: 1, b: { c: 1 } }) as object)).toEqual(["a", "b"]);
      expect(Object.keys((take({ a: 1, b: { c: 1 } }) as { b: object }).b)).toEqual(["c"]);
    } finally {
      delete prototype.polluted;
    }
  });
});

test("copy returns what decode(encode()) returns", () => {
  fc.assert(
    fc.property(anyValue, (value) => expectExact(codec.copy(value), throughBytes(value))),
    { numRuns: 500 },
  );
});

test("a copy shares nothing with the original", () => {
  const original = {
    list: [{ n: 1 }],
    map: new Map([[{ k: 1 }, new Set([[1]])]]),
    bytes: Buffer.from("abc"),
    at: new Date(0),
  };
  for (const take of [codec.copy, codec.copyTrusted]) {
    const copy = take(original);
    copy.list[0]!.n = 2;
    for (const [key, set] of copy.map) {
      key.k = 2;
      for (const list of set) list.push(2);
    }
    copy.bytes[0] = 0;
    copy.at.setTime(9);
    expectExact(original, {
      list: [{ n: 1 }],
      map: new Map([[{ k: 1 }, new Set([[1]])]]),
      bytes: Buffer.from("abc"),
      at: new Date(0),
    });
  }
});

test("values that call the cache while they are read are restored correctly", () => {
  const inner = { deep: "x".repeat(100) };
  const value = {
    first: 1,
    get again() {
      return throughBytes(inner);
    },
    last: "end",
  };
  expectExact(throughBytes(value), { first: 1, again: inner, last: "end" });
});

test("JSON-like values take fewer bytes than their JSON text, or hardly more", () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      const text = Buffer.byteLength(JSON.stringify(value));
      expect(codec.encode(value).bytes.length).toBeLessThanOrEqual(text * 2 + 9);
    }),
  );
});
