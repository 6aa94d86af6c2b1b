import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MemoryBackend } from "../../../../src/backends/memory/backend.ts";
import { nameOf } from "../../../../src/backends/memory/layout/key-name.ts";
import { XCache } from "../../../../src/xcache.ts";

const HASHED = 16_383;

/** Keys of one length that differ in their last characters only. */
const longKeys = (count: number, length = HASHED + 1): string[] =>
  // Made from bytes, so that each is one flat string as from outside, not a concatenation.
  Array.from({ length: count }, (_, at) => Buffer.from(String(at).padStart(length, "k")).toString("latin1"));

const sharing = (options = {}): XCache =>
  new XCache({ backend: new MemoryBackend({ values: "shared", ...options }) });

const listed = async (cache: XCache): Promise<string[]> => {
  const keys: string[] = [];
  for await (const key of cache.keys()) keys.push(key);
  return keys;
};

describe("the name of a key", () => {
  test("is the key itself as long as V8 hashes all of it", () => {
    const key = "k".repeat(HASHED);
    expect(nameOf(key)).toBe(key);
  });

  test("of a longer one is something no key can be, and the same each time", () => {
    const [key = "", other = ""] = longKeys(2);
    expect(typeof nameOf(key)).toBe("bigint");
    expect(nameOf(key)).toBe(nameOf(Buffer.from(key).toString()));
    expect(nameOf(other)).not.toBe(nameOf(key));
  });

  test("distinguishes keys that are equal in UTF-8", () => {
    const rest = "k".repeat(HASHED);
    expect(nameOf(`${rest}\ud800`)).not.toBe(nameOf(`${rest}\ud801`));
    expect(nameOf(`${rest}\ud800`)).not.toBe(nameOf(`${rest}\ufffd`));
  });

  test("of something that is not a key is that itself", () => {
    fc.assert(
      fc.property(fc.oneof(fc.constant(undefined), fc.constant(null), fc.object(), fc.integer()), (value) => {
        expect(nameOf(value as never)).toBe(value);
      }),
    );
  });
});

describe("long keys and tags", () => {
  test("are stored, listed, deleted, invalidated and cleared like any other", async () => {
    await using cache = sharing();
    const keys = longKeys(200);
    const [tag = "", otherTag = ""] = longKeys(2, HASHED + 2);
    for (const [at, key] of keys.entries()) await cache.set(key, at, { tags: [at < 50 ? tag : otherTag] });
    await cache.set("short", "s");
    for (const [at, key] of keys.entries()) expect(await cache.get(key)).toBe(at);
    expect((await listed(cache)).sort()).toEqual([...keys, "short"].sort());
    expect(await cache.delete(keys.slice(190))).toBe(10);
    expect(await cache.invalidatePattern("*k150")).toBe(1);
    await cache.invalidateTags(tag);
    expect(await cache.tags(keys[60] ?? "")).toEqual([otherTag]);
    expect((await listed(cache)).length).toBe(200 - 10 - 1 - 50 + 1);
    await cache.set(keys[0] ?? "", "again");
    expect(await cache.get(keys[0] ?? "")).toBe("again");
    await cache.clear();
    expect(await listed(cache)).toEqual([]);
    await cache.set(keys[1] ?? "", "new");
    expect([await cache.get(keys[0] ?? ""), await cache.get(keys[1] ?? "")]).toEqual([undefined, "new"]);
  });

  test("are evicted, and reported by their full keys", async () => {
    await using cache = sharing({ maxEntries: 10 });
    const evicted: string[] = [];
    cache.on("evict", ({ key }) => evicted.push(key));
    const keys = longKeys(30);
    for (const key of keys) await cache.set(key, 1);
    const left = await listed(cache);
    expect(left.length).toBe(10);
    expect([...evicted, ...left].sort()).toEqual([...keys].sort());
  });

  test("of one length cost about as much as those that V8 hashes in full", async () => {
    const cost = async (length: number): Promise<number> => {
      await using cache = sharing();
      const [given, asked] = [longKeys(800, length), longKeys(800, length)];
      const before = process.cpuUsage();
      for (const key of given) await cache.set(key, 1, { tags: [key] });
      for (const key of asked) await cache.get(key);
      return process.cpuUsage(before).user;
    };
    await cost(HASHED);
    const hashed = await cost(HASHED);
    expect(await cost(HASHED + 1)).toBeLessThan(8 * hashed);
  });
});
