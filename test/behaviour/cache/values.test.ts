import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CodecError } from "../../../src/core/errors.ts";
import { anyValue } from "../../codec/arbitrary.ts";
import { difference } from "../../codec/exact.ts";
import { Gate } from "./gate.ts";
import { memoryCache } from "./memory-cache.ts";

interface Tree {
  list: number[];
  inner?: { deep: Map<string, number[]> };
}

const withThen = (then: unknown): object => ({ then });

describe("a round trip is exact", () => {
  it("any supported value is restored with the same types all the way down, by every way to read it", async () => {
    const { cache } = memoryCache();
    await fc.assert(
      fc.asyncProperty(anyValue, async (value) => {
        await cache.set("k", value);
        expect(difference(await cache.get("k"), value)).toBeUndefined();
        expect(difference((await cache.getMany(["k"])).get("k"), value)).toBeUndefined();
        expect(difference(await cache.getOrSet("k", () => "not run"), value)).toBeUndefined();
      }),
      { numRuns: 200 },
    );
  });

  it("a __proto__ key is restored as an own property and changes no prototype", async () => {
    const { cache } = memoryCache();
    await cache.set("k", JSON.parse('{ "__proto__": { "polluted": true }, "a": { "__proto__": 1 } }'));
    const value = (await cache.get("k")) as object;
    expect(JSON.stringify(value)).toBe('{"__proto__":{"polluted":true},"a":{"__proto__":1}}');
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it("a class instance is restored as plain data", async () => {
    class Point {
      x = 1;
      length(): number {
        return this.x;
      }
    }
    const { cache } = memoryCache();
    await cache.set("k", new Point());
    const value = (await cache.get("k")) as object;
    expect(value).toEqual({ x: 1 });
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });
});

describe("values belong to the caller", () => {
  const tree = (): Tree => ({ list: [1], inner: { deep: new Map([["a", [1]]]) } });
  const spoil = (value: Tree | undefined): void => {
    value?.list.push(99);
    value?.inner?.deep.get("a")?.push(99);
    value?.inner?.deep.set("b", []);
  };

  it("changing what was passed to set changes nothing stored", async () => {
    const { cache } = memoryCache();
    const [one, many] = [tree(), tree()];
    await cache.set("one", one);
    await cache.setMany({ many });
    spoil(one);
    spoil(many);
    expect(await cache.get("one")).toEqual(tree());
    expect(await cache.get("many")).toEqual(tree());
  });

  it("changing what was returned changes neither the cache nor another caller's value", async () => {
    const { cache } = memoryCache();
    await cache.set("k", tree());
    const read = [
      () => cache.get<Tree>("k"),
      async () => (await cache.getMany<Tree>(["k"])).get("k"),
      () => cache.getOrSet("k", tree),
    ];
    for (const one of read) {
      for (const other of read) {
        const [first, second] = [await one(), await other()];
        spoil(first);
        expect(second).toEqual(tree());
      }
    }
    expect(await cache.get("k")).toEqual(tree());
  });

  it("changing what a load returned changes nothing stored", async () => {
    const { cache } = memoryCache();
    const source = tree();
    const loaded = await cache.getOrSet("k", () => source);
    spoil(source);
    spoil(loaded);
    expect(await cache.get("k")).toEqual(tree());
  });

  it("a list of tags changed after set changes nothing stored, an empty one included", async () => {
    const { cache } = memoryCache();
    const [none, one]: [string[], string[]] = [[], ["a"]];
    await cache.set("none", 1, { tags: none });
    await cache.set("one", 1, { tags: one });
    none.push("late");
    one[0] = "late";
    await cache.set("after", 1);
    expect(await cache.tags("none")).toEqual([]);
    expect(await cache.tags("one")).toEqual(["a"]);
    expect(await cache.tags("after")).toEqual([]);
    (await cache.tags("one"))?.push("more");
    expect(await cache.tags("one")).toEqual(["a"]);
  });

  it("a list of tags changed while its load runs is not what the load is stored under", async () => {
    const { cache } = memoryCache();
    const gate = new Gate<number>();
    const tags = ["a"];
    const caller = cache.getOrSet("k", gate.load, { tags });
    await gate.finish(1).then(() => caller);
    const again = cache.getOrSet("l", gate.load, { tags });
    tags[0] = "b";
    await gate.finish(2);
    await again;
    expect(await cache.tags("l")).toEqual(["a"]);
  });
});

describe("unsupported values are rejected and named", () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = { list: [cyclic] };
  const refused: [name: string, value: unknown, path: string][] = [
    ["undefined", undefined, "$"],
    ["a function", () => 1, "$"],
    ["a symbol", Symbol("s"), "$"],
    ["a function inside", { a: [{ run: () => 1 }] }, "$.a[0].run"],
    ["a symbol in a Map", new Map([["k", Symbol("s")]]), '$.get("k")'],
    ["a cycle", cyclic, "$.self.list[0]"],
    ["a promise", Promise.resolve(1), "$"],
    ["a WeakMap", { weak: new WeakMap() }, "$.weak"],
    [
      "an object whose getter throws",
      Object.defineProperty({}, "bad", {
        enumerable: true,
        get: () => {
          throw new Error("no");
        },
      }),
      "$.bad",
    ],
  ];

  it.each(refused)("%s: the error has the path, and the old value stays", async (_name, value, path) => {
    const { cache } = memoryCache();
    await cache.set("k", "old");
    for (const run of [() => cache.set("k", value), () => cache.setMany({ k: value })]) {
      const error = await run().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(CodecError);
      expect(error).toMatchObject({ code: "VALUE_UNSUPPORTED", path });
    }
    expect(await cache.get("k")).toBe("old");
  });
});

describe('values: "shared"', () => {
  it("returns the stored object itself, to every caller", async () => {
    const { cache } = memoryCache({}, { values: "shared" });
    const value = { n: 1, run: () => 1, made: new URL("http://x") };
    await cache.set("k", value);
    expect(await cache.get("k")).toBe(value);
    expect((await cache.getMany(["k"])).get("k")).toBe(value);
    expect(await cache.getOrSet("k", () => "not run")).toBe(value);
  });

  it("callers of one load share its result", async () => {
    const { cache } = memoryCache({}, { values: "shared" });
    const gate = new Gate<object>();
    const callers = [cache.getOrSet("k", gate.load), cache.getOrSet("k", gate.load)];
    const value = { n: 1 };
    await gate.finish(value);
    expect((await Promise.all(callers)).map((got) => got === value)).toEqual([true, true]);
  });

  const unfit: [name: string, value: unknown][] = [
    ["undefined", undefined],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["a promise", Promise.resolve(1)],
    ["an object with a then method", withThen(() => {})],
  ];

  it.each(unfit)(
    "%s is rejected: a caller could not distinguish it from another answer",
    async (_name, value) => {
      const { cache } = memoryCache({}, { values: "shared" });
      await cache.set("k", "old");
      for (const run of [() => cache.set("k", value), () => cache.setMany([["k", value]])]) {
        const error = await run().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(CodecError);
        expect(error).toMatchObject({ code: "VALUE_UNSUPPORTED", path: "$" });
      }
      expect(await cache.get("k")).toBe("old");
    },
  );

  it("a load that returns a function or a symbol is rejected as well", async () => {
    const { cache } = memoryCache({}, { values: "shared" });
    await expect(cache.getOrSet("f", () => () => 1)).rejects.toMatchObject({ code: "VALUE_UNSUPPORTED" });
    await expect(cache.getOrSet("s", () => Symbol("s"))).rejects.toMatchObject({ code: "VALUE_UNSUPPORTED" });
    expect(await cache.exists("f")).toBe(false);
  });
});

describe.each(["copy", "shared"] as const)('a then property that is plain data, values: "%s"', (values) => {
  it("is restored as data, whatever way it is read", async () => {
    const { cache } = memoryCache({}, { values });
    for (const value of [withThen(5), withThen(null), withThen(withThen("x")), [withThen("later")]]) {
      await cache.set("k", value);
      expect(await cache.get("k")).toEqual(value);
      expect(await cache.getOrSet("k", () => "not run")).toEqual(value);
      await cache.delete("k");
      expect(await cache.getOrSet<unknown>("k", () => value)).toEqual(value);
    }
  });
});
