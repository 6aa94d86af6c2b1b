import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCodec } from "../../src/codec/codec.ts";
import { type Size, unfold } from "../../src/codec/unfolding.ts";
import { CodecError } from "../../src/core/errors.ts";

const codec = createCodec();
const jsonCodec = createCodec({ serialization: "json" });

const waysIn: readonly [string, (value: unknown) => unknown][] = [
  ["copy", (value) => codec.copy(value)],
  ["encode", (value) => codec.encode(value)],
  ["encode as JSON", (value) => jsonCodec.encode(value)],
];

/** Values that refer to something twice: each level doubles what a walk visits. */
const pairings: readonly [string, (part: unknown) => unknown][] = [
  ["arrays", (part) => [part, part]],
  ["objects", (part) => ({ left: part, right: part })],
  ["Maps", (part) => new Map([[1, part]]).set(2, part)],
  ["Sets", (part) => new Set([part, [part]])],
  ["causes of errors", (part) => [new Error("x", { cause: part }), part]],
  ["sparse arrays", (part) => Object.assign([], { 5: part, 7: part })],
  ["class instances", (part) => Object.assign(new Pair(), { left: part, right: part })],
];

class Pair {
  left: unknown;
  right: unknown;
}

/** A leaf that counts how often it is read, and `levels` of pairs on top of it. */
function shared(pair: (part: unknown) => unknown, levels: number): { value: unknown; reads: () => number } {
  let reads = 0;
  let value: unknown = {
    get leaf() {
      reads++;
      return 1;
    },
  };
  for (let level = 0; level < levels; level++) value = pair(value);
  return { value, reads: () => reads };
}

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("a value of few objects that expands to billions of parts", () => {
  for (const [way, enter] of waysIn) {
    test.each(pairings)(`is rejected by ${way} after little work: %s`, (_, pair) => {
      const { value, reads } = shared(pair, 40);
      const error = thrownBy(() => enter(value));
      expect(error).toBeInstanceOf(CodecError);
      expect(error).toMatchObject({
        code: "VALUE_TOO_LARGE",
        message: "The value takes more than 67108864 bytes, the limit for one value.",
      });
      expect(reads()).toBeLessThan(10_000);
    });
  }

  test("is rejected as quickly if the objects are few and their other parts are many", () => {
    const numbers = Array.from({ length: 1_000 }, (_, at) => at);
    const { value, reads } = shared((part) => [...numbers, part, part], 40);
    for (const [, enter] of waysIn) expect(thrownBy(() => enter(value))).toBeInstanceOf(CodecError);
    expect(reads()).toBeLessThan(30_000);
  });

  test("is rejected before its memory is allocated if the parts are large", () => {
    const bytes = Buffer.alloc(1_000_000);
    const before = process.memoryUsage().arrayBuffers;
    expect(thrownBy(() => codec.copy(new Array(1_000).fill(bytes)))).toMatchObject({
      code: "VALUE_TOO_LARGE",
    });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(200_000_000);
    expect(thrownBy(() => codec.copy(new Array(100).fill("x".repeat(1_000_000))))).toMatchObject({
      code: "VALUE_TOO_LARGE",
    });
  });

  test("that refers back to itself is rejected for that, with the path", () => {
    const cyclic: unknown[] = [Array.from({ length: 10_000 }, () => ({}))];
    cyclic.push({ back: cyclic });
    for (const [, enter] of waysIn) {
      expect(thrownBy(() => enter(cyclic))).toMatchObject({ code: "VALUE_UNSUPPORTED", path: "$[1].back" });
    }
  });
});

describe("a value within the limits", () => {
  test("is accepted however often its parts are shared", () => {
    const category = { name: "books", parents: [{ name: "all" }] };
    const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, category }));
    expect(codec.copy(rows)).toEqual(rows);
    expect(codec.decode(codec.encode(rows))).toEqual(rows);
  });

  test("is accepted by a codec with a small limit, which counts bytes and not objects", () => {
    const small = createCodec({ limits: { maxBytes: 2_000 } });
    const lists = Array.from({ length: 1_000 }, () => []);
    expect(small.copy(lists)).toEqual(lists);
    expect(small.decode(small.encode(lists))).toEqual(lists);
  });
});

describe("a small limit", () => {
  test.each<[string, (size: number) => unknown]>([
    ["a text", (size) => "x".repeat(size - 3)],
    ["bytes", (size) => Buffer.alloc(size - 3)],
    ["a text in a list", (size) => ["x".repeat(size - 4)]],
    ["a text in an object", (size) => ({ a: "x".repeat(size - 6) })],
    ["a name of a field", (size) => ({ ["x".repeat(size - 5)]: 1 })],
    ["numbers", (size) => new Array(size - 3).fill(1)],
  ])("applies to a copy nearly as to the encoded form: %s", (_, make) => {
    const small = createCodec({ limits: { maxBytes: 2_000 } });
    expect(small.encode(make(2_000)).bytes.length).toBe(2_000);
    expect(small.copy(make(2_000))).toEqual(make(2_000));
    expect(thrownBy(() => small.encode(make(2_001)))).toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(thrownBy(() => small.copy(make(2_010)))).toMatchObject({ code: "VALUE_TOO_LARGE" });
  });

  test("allows a thousand objects, not ten thousand that it would have no room for in memory", () => {
    const small = createCodec({ limits: { maxBytes: 20_000 } });
    const lists = (count: number): unknown => Array.from({ length: count - 1 }, () => []);
    for (const enter of [small.copy, small.encode]) {
      expect(() => enter(lists(1_024))).not.toThrow();
      expect(thrownBy(() => enter(lists(1_025)))).toMatchObject({ code: "VALUE_TOO_LARGE" });
    }
  });
});

describe("the search for the cause of a rejection", () => {
  test("is short when the value is too large anyway", () => {
    let reads = 0;
    const large = Array.from({ length: 50_000 }, () => ({
      get part() {
        reads++;
        return "x".repeat(2_000);
      },
    }));
    expect(thrownBy(() => codec.encode(large))).toMatchObject({ code: "VALUE_TOO_LARGE" });
    // The walk, what it finds out on the way, and the search.
    expect(reads).toBeLessThan(60_000);
  });
});

describe("the size of a value with shared references followed", () => {
  const most = (objects: number, bytes: number): Size => ({ objects, bytes });

  test("is what a walk along every reference counts", () => {
    const count = (value: unknown): Size => {
      if (typeof value === "string") return most(0, value.length);
      if (!Array.isArray(value)) return most(0, 1);
      const parts = value.map(count);
      const sum = (field: keyof Size): number => parts.reduce((total, part) => total + part[field], 1);
      return most(sum("objects"), sum("bytes"));
    };
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.string({ minLength: 300, maxLength: 400 }));
    const steps = fc.array(fc.array(fc.nat(), { maxLength: 4 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(fc.array(leaf, { maxLength: 5 }), steps, (leaves, lists) => {
        const made: unknown[] = [...leaves, null];
        for (const list of lists) made.push(list.map((at) => made[at % made.length]));
        const value = made.at(-1);
        const { objects, bytes } = count(value);
        expect(unfold(value, most(objects, bytes), 100)).toBe("within");
        if (objects > 0) expect(unfold(value, most(objects - 1, bytes), 100)).toBe("beyond");
        expect(unfold([value], most(objects + 1, bytes), 100)).toBe("beyond");
      }),
    );
  });

  test("does not count what cannot be read or is nested too deeply, and reports a cycle", () => {
    const broken = {
      get part(): never {
        throw new Error("no");
      },
    };
    expect(unfold([broken, broken], most(3, 11), 100)).toBe("within");
    expect(unfold([[["deep"]]], most(2, 2), 2)).toBe("within");
    const self: unknown[] = [];
    self.push(1, self);
    expect(unfold(self, most(1e9, 1e9), 100)).toBe("cyclic");
  });
});
