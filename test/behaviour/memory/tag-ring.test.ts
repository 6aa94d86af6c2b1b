import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { Table } from "../../../src/backends/memory/table.ts";
import { TagRing, type TagSet } from "../../../src/backends/memory/tag-set.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { memoryCache } from "../cache/memory-cache.ts";

const NEVER = Number.POSITIVE_INFINITY;

interface Stored {
  readonly ring: TagRing;
  readonly table: Table<TagSet>;
  put(key: string, tags: readonly string[]): void;
  remove(key: string): void;
  value(key: string): unknown;
  clear(): void;
}

function open(maxEntries = 100): Stored {
  const ring = new TagRing();
  const table = new Table<TagSet>({ maxEntries, maxBytes: NEVER, clock: new ManualClock() });
  const page = table.openPage();
  return {
    ring,
    table,
    put: (key, tags) => void table.put(page, key, key, ring.tagSetFor(tags), NEVER),
    remove: (key) => void table.remove(page, key),
    value: (key) => page.peek(key),
    clear() {
      table.clear(page);
      while (!table.turn(1_000));
    },
  };
}

describe("a tag is forgotten", () => {
  test("when the last entry that carried it is removed, overwritten, evicted or cleared", () => {
    const { ring, put, remove, clear } = open(2);
    put("a", ["x", "y"]);
    put("b", ["x"]);
    expect(ring.size).toBe(2);
    remove("a");
    expect(ring.size).toBe(1);
    put("b", ["z"]);
    expect(ring.size).toBe(1);
    put("b", []);
    expect(ring.size).toBe(0);
    for (let at = 0; at < 50; at++) put(`k${at}`, [`t${at}`]);
    expect(ring.size).toBeLessThanOrEqual(2);
    clear();
    expect(ring.size).toBe(0);
  });

  test("immediately, even if the event loop never turns", () => {
    const { ring, put } = open(3);
    for (let at = 0; at < 1_000; at++) {
      put("same key", [`t${at}`]);
      expect(ring.size).toBe(1);
    }
  });
});

describe("an invalidation reaches", () => {
  test("an entry that replaced the only other one under its tags", async () => {
    const { ring, put, value } = open(1);
    put("a", ["x"]);
    put("b", ["x"]);
    expect([value("a"), value("b"), ring.size]).toEqual([undefined, "b", 1]);
    ring.invalidate("x");
    expect(value("b")).toBeUndefined();
    const cache = memoryCache({ backend: new MemoryBackend({ maxEntries: 1 }) }).cache;
    await cache.set("a", 1, { tags: ["x"] });
    await cache.set("b", 1, { tags: ["x"] });
    await cache.set("b", 2, { tags: ["x"] });
    await cache.invalidateTags("x");
    expect(await cache.get("b")).toBeUndefined();
  });

  test("every entry that carries the tag, and no other, whatever has come and gone", () => {
    const tag = fc.constantFrom("x", "y", "z");
    const key = fc.integer({ min: 0, max: 7 }).map((at) => `k${at}`);
    const step = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({ do: fc.constant("put" as const), key, tags: fc.uniqueArray(tag) }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("remove" as const), key }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("invalidate" as const), tag }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const) }) },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 60 }), (maxEntries, steps) => {
        const { ring, table, put, remove, value, clear } = open(maxEntries);
        const live = new Map<string, readonly string[]>();
        for (const each of steps) {
          if (each.do === "put") {
            put(each.key, each.tags);
            live.set(each.key, each.tags);
          } else if (each.do === "remove") {
            remove(each.key);
            live.delete(each.key);
          } else if (each.do === "invalidate") {
            ring.invalidate(each.tag);
            for (const [at, tags] of live) if (tags.includes(each.tag)) live.delete(at);
          } else {
            clear();
            live.clear();
          }
          // Stored entries were stored and not invalidated; missing ones were evicted.
          let found = 0;
          for (let at = 0; at < 8; at++) {
            if (value(`k${at}`) === undefined) continue;
            expect(live.has(`k${at}`)).toBe(true);
            found++;
          }
          if (live.size <= maxEntries && maxEntries === 8) expect(found).toBe(live.size);
          expect(ring.size).toBeLessThanOrEqual(Math.min(3, 3 * table.size));
        }
      }),
    );
  });
});
