// One frozen object for all callers.
import { describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { ConfigError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

interface Tree {
  name: string;
  list: { n: number }[];
}

const caches = redisCaches({ nearCache: { values: "frozen" } });
const inMemory = (): XCache => new XCache({ backend: new MemoryBackend({ values: "frozen" }) });
const tree = (): Tree => ({ name: "a", list: [{ n: 1 }] });

describe("the memory store", () => {
  it("returns one object that cannot be changed, and leaves the given one alone", async () => {
    const cache = inMemory();
    const given = tree();
    await cache.set("k", given);
    const got = (await cache.get<Tree>("k")) as Tree;
    expect(got).toEqual(tree());
    expect(await cache.get("k")).toBe(got);
    expect(cache.peek("k")).toBe(got);
    expect((await cache.getMany(["k"])).get("k")).toBe(got);
    expect(() => got.list.push({ n: 2 })).toThrow(TypeError);
    expect(() => Object.assign(got.list[0] as object, { n: 3 })).toThrow(TypeError);
    given.name = "changed";
    given.list.push({ n: 2 });
    expect(await cache.get("k")).toEqual(tree());
  });

  it("returns the same object to the caller that loads and to those that join it", async () => {
    const cache = inMemory();
    const made: Tree[] = [];
    const load = (): Tree => {
      made.push(tree());
      return made[0] as Tree;
    };
    const [one, other] = await Promise.all([cache.getOrSet("k", load), cache.getOrSet("k", load)]);
    expect(other).toBe(one);
    expect(await cache.get("k")).toBe(one);
    expect(Object.isFrozen(one.list[0])).toBe(true);
    expect(Object.isFrozen(made[0])).toBe(false);
    expect(await cache.getOrSet("alone", () => tree())).toBe(await cache.get("alone"));
  });

  it("rejects a load that returns a function or a symbol", async () => {
    const cache = inMemory();
    await expect(cache.getOrSet("f", () => () => 1)).rejects.toMatchObject({ code: "VALUE_UNSUPPORTED" });
    await expect(cache.getOrSet("s", () => Symbol("s"))).rejects.toMatchObject({ code: "VALUE_UNSUPPORTED" });
    expect(await cache.exists("f")).toBe(false);
    expect(await cache.exists("s")).toBe(false);
  });

  it.each([
    ["a Date", { at: new Date(0) }],
    ["a Map", new Map([["a", 1]])],
    ["a Set", [new Set([1])]],
    ["a Buffer", { bytes: Buffer.from("x") }],
  ])("copies a value that contains %s", async (_what, value) => {
    const cache = inMemory();
    await cache.set("k", value);
    const got = await cache.get("k");
    expect(got).toEqual(value);
    expect(Object.isFrozen(got)).toBe(false);
    expect(await cache.get("k")).not.toBe(got);
  });

  it("is not fooled by a value that is frozen on the outside only", async () => {
    const cache = inMemory();
    const given = Object.freeze({ inner: { n: 1 } });
    const got = await cache.getOrSet("k", () => given);
    given.inner.n = 2;
    expect(got).toEqual({ inner: { n: 1 } });
    expect(await cache.get("k")).toEqual({ inner: { n: 1 } });
  });

  it("accepts primitives and rejects an unknown mode", async () => {
    const cache = inMemory();
    await cache.set("k", "text");
    expect(await cache.get("k")).toBe("text");
    const wrong = { values: "ice" } as unknown as { values: "frozen" };
    expect(() => new MemoryBackend(wrong)).toThrow(ConfigError);
    expect(() => new MemoryBackend(wrong)).toThrow(/"copy", "shared" or "frozen"/);
    await using byAddress = new XCache({ kvUrl: "memory://?values=frozen" });
    await byAddress.set("k", tree());
    expect(Object.isFrozen(await byAddress.get("k"))).toBe(true);
  });
});

it("the near tier returns one frozen object, and so do reads of the store", async () => {
  const cache = caches.open();
  await cache.set("k", tree());
  const first = (await cache.get<Tree>("k")) as Tree;
  expect(Object.isFrozen(first.list)).toBe(true);
  const kept = await until(() => cache.get("k").then((value) => value === cache.peek("k") && value), {
    what: "it is kept",
  });
  expect(kept).toEqual(tree());
  const loaded = await cache.getOrSet("loaded", () => tree());
  expect(Object.isFrozen(loaded.list[0])).toBe(true);
});
