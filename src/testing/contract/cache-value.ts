// Contract cases: values come back exactly, and each caller owns its copy.
import assert from "node:assert/strict";
import { CodecError } from "../../core/errors.ts";
import { HeldLoad } from "./held-load.ts";
import { type ContractGroup, rule } from "./stage.ts";

function deep(levels: number): unknown {
  let value: unknown = "bottom";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value };
  return value;
}

/** Values of every supported kind. Each must come back with the same types at every level. */
const VALUES: Readonly<Record<string, () => unknown>> = {
  numbers: () => [
    0,
    -0,
    1.5,
    -1,
    Number.NaN,
    Infinity,
    -Infinity,
    2 ** 53,
    Number.MIN_VALUE,
    Number.MAX_VALUE,
    1e21,
  ],
  integers: () => [
    127,
    128,
    255,
    256,
    32_768,
    65_536,
    2 ** 31,
    2 ** 32,
    2 ** 33,
    -129,
    -32_769,
    -(2 ** 31) - 1,
  ],
  bigints: () => [0n, -1n, 2n ** 63n, -(2n ** 64n), 10n ** 100n],
  strings: () => ["", "ä", "😀", "a\0b", "\r\n", "x".repeat(100_000)],
  literals: () => [null, true, false, undefined],
  dates: () => [new Date(0), new Date(-1), new Date(1_767_225_600_123)],
  "regular expressions": () => [/a+/giu, /\/\\/, /(?<name>x)/s],
  maps: () =>
    new Map<unknown, unknown>([
      ["a", 1],
      [1, "b"],
      [null, new Map([[{ key: 1 }, new Set([1])]])],
    ]),
  sets: () => new Set<unknown>([1, "1", null, undefined, [1], new Set([new Date(5)])]),
  "byte arrays": () => [new Uint8Array(), Uint8Array.from({ length: 256 }, (_, byte) => byte)],
  "typed arrays": () => [
    Int8Array.of(-1),
    Uint8ClampedArray.of(255),
    Uint16Array.of(65_535),
    Int16Array.of(-2),
    Uint32Array.of(2 ** 32 - 1),
    Int32Array.of(-3),
    Float32Array.of(0.5, Number.NaN),
    Float64Array.of(Math.PI, -0),
    BigInt64Array.of(-(2n ** 63n)),
    BigUint64Array.of(2n ** 64n - 1n),
  ],
  objects: () => ({ a: 1, b: undefined, "": 2, "a b": { c: [] }, constructor: 3, 10: "ten", 2: "two" }),
  "deep nesting": () => deep(60),
  "long lists": () => Array.from({ length: 5_000 }, (_, at) => ({ at, text: `item ${at}` })),
};

const exact = Object.entries(VALUES).map(([name, make]) =>
  rule(`${name} come back exactly`, async (stage) => {
    const cache = stage.cache();
    await cache.set("set", make());
    assert.deepStrictEqual(await cache.get("set"), make());
    assert.deepStrictEqual((await cache.getMany(["set"])).get("set"), make());
    assert.deepStrictEqual(await stage.until(cache.getOrSet("loaded", make)), make());
    assert.deepStrictEqual(await stage.until(cache.getOrSet("loaded", () => "again")), make());
  }),
);

const special = [
  rule("an invalid date comes back as an invalid date", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", [new Date(Number.NaN)]);
    const [date] = (await cache.get<unknown[]>("key")) ?? [];
    assert.ok(date instanceof Date && Number.isNaN(date.getTime()), String(date));
  }),
  rule("a __proto__ key comes back as an own property and changes no prototype", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", JSON.parse('{ "__proto__": { "polluted": true }, "a": { "__proto__": 1 } }'));
    const value = (await cache.get("key")) as Record<string, unknown>;
    assert.equal(JSON.stringify(value), '{"__proto__":{"polluted":true},"a":{"__proto__":1}}');
    assert.equal(Object.getPrototypeOf(value), Object.prototype);
    assert.equal(({} as Record<string, unknown>).polluted, undefined);
  }),
  rule("an unsupported value is rejected with its path, and the old value stays", async (stage) => {
    const cache = stage.cache();
    await cache.set("key", "old");
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    for (const value of [undefined, () => 1, Symbol("s"), { a: [() => 1] }, { a: Symbol("s") }, cyclic]) {
      await assert.rejects(
        cache.set("key", value),
        (error: unknown) => error instanceof CodecError && error.path !== undefined,
        `set(${String(typeof value)})`,
      );
    }
    await assert.rejects(
      cache.setMany([
        ["other", 1],
        ["key", { a: () => 1 }],
      ]),
      CodecError,
    );
    assert.equal(await cache.get("key"), "old");
    assert.equal(await cache.exists("other"), false);
  }),
];

interface Held {
  list: number[];
}

const owned = [
  rule("mutating a value that was set or returned does not affect other callers", async (stage) => {
    const cache = stage.cache();
    const given: Held = { list: [1] };
    await cache.set("key", given);
    given.list.push(2);
    const first = await cache.get<Held>("key");
    assert.deepEqual(first, { list: [1] });
    first?.list.push(3);
    const many = (await cache.getMany<Held>(["key"])).get("key");
    assert.deepEqual(many, { list: [1] });
    many?.list.push(4);
    const loaded = await stage.until(cache.getOrSet<Held>("key", () => ({ list: [] })));
    assert.deepEqual(loaded, { list: [1] });
    loaded.list.push(5);
    assert.deepEqual(await cache.get("key"), { list: [1] });
  }),
  rule("callers that share a load get separate copies of its value", async (stage) => {
    const cache = stage.cache();
    const held = new HeldLoad<Held>();
    const calls = Array.from({ length: 5 }, () => cache.getOrSet("key", held.load));
    await stage.until(held.started);
    const source: Held = { list: [1] };
    held.finish(source);
    const values = await stage.until(Promise.all(calls));
    for (const value of values) assert.deepEqual(value, { list: [1] });
    values[0]?.list.push(2);
    source.list.push(3);
    for (const value of values.slice(1)) value.list.push(4);
    assert.equal(new Set(values.map(({ list }) => list)).size, values.length, "two callers share a list");
    assert.deepEqual(await cache.get("key"), { list: [1] });
  }),
];

export const cacheValues: ContractGroup = {
  name: "cache values",
  cases: () => [...exact, ...special, ...owned],
};
