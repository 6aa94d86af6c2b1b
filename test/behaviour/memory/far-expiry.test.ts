import { describe, expect, test } from "vitest";
import { Box } from "../../../src/backends/memory/layout/box.ts";
import { Rows } from "../../../src/backends/memory/layout/rows.ts";
import { type EntryTags, Table } from "../../../src/backends/memory/table.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { memoryCache } from "../cache/memory-cache.ts";

const NEVER = Number.POSITIVE_INFINITY;
const YEAR_MS = 365 * 24 * 3_600_000;

describe("a ttl of many years", () => {
  test.each([3e9, 1e10, 1e12])("of %d seconds is the same after every set", async (ttl) => {
    const { cache, clock } = memoryCache();
    for (let time = 0; time < 5; time++) {
      await cache.set("plain", time, { ttl });
      expect(await cache.ttl("plain")).toBe(ttl);
      await cache.set("tagged", time, { ttl, tags: ["t"] });
      expect(await cache.ttl("tagged")).toBe(ttl);
      await cache.get("plain");
    }
    await clock.advance(1_000_000);
    expect(await cache.ttl("plain")).toBe(ttl - 1_000);
    await cache.set("plain", 1, { ttl: NEVER });
    expect(await cache.ttl("plain")).toBe(NEVER);
    await cache.set("plain", 1, { ttl });
    expect(await cache.ttl("plain")).toBe(ttl);
  });

  test("beyond seventy million years is never, at the first set as at the second", async () => {
    const { cache } = memoryCache();
    for (let time = 0; time < 2; time++) {
      await cache.set("k", time, { ttl: 1e16 });
      expect(await cache.ttl("k")).toBe(NEVER);
    }
  });

  test("can be read from a box to the millisecond, and compared with another", () => {
    const now = Date.UTC(2026, 0, 1);
    for (const years of [50, 66, 100, 1_000, 100_000]) {
      const expires = now + years * YEAR_MS + 123;
      expect(new Box("v", 1, expires).expires).toBe(expires);
      expect(new Box("v", 1, expires).renew("v", expires - 1)).toBe(false);
      expect(new Box("v", 1, expires).renew("v", expires)).toBe(true);
      expect(new Box("v", 1, NEVER).renew("v", expires)).toBe(false);
      expect(new Box("v", 1, expires).renew("v", NEVER)).toBe(true);
    }
  });
});

describe("the row of a boxed entry", () => {
  test("never has a later expiry, even if the new one is in the same second", () => {
    const clock = new ManualClock();
    const written: number[] = [];
    const table = new Table<EntryTags>({ maxEntries: 10, maxBytes: NEVER, clock });
    const page = table.openPage();
    const writeTimes = Rows.prototype.writeTimes;
    Rows.prototype.writeTimes = function (slot, expires, staleUntil) {
      written.push(expires);
      writeTimes.call(this, slot, expires, staleUntil);
    };
    try {
      const start = clock.now();
      // The second write boxes the entry, and the third, which is earlier, writes box and row.
      for (const ms of [90_900, 91_000, 90_950, 90_100, 90_050.9, 90_050.1]) {
        table.put(page, "a", ms, undefined, start + ms);
        expect(page.held("a") instanceof Box).toBe(ms !== 90_900);
        expect(table.find(page, "a")?.expires).toBe(start + Math.floor(ms));
        expect(written.at(-1)).toBeLessThanOrEqual(start + Math.floor(ms));
      }
    } finally {
      Rows.prototype.writeTimes = writeTimes;
    }
  });

  test("creates no column of stale times when the entry leaves its box", () => {
    const clock = new ManualClock();
    const table = new Table<EntryTags>({ maxEntries: 10, maxBytes: NEVER, clock });
    const page = table.openPage();
    const columns = new Set<Float64Array | undefined>();
    const writeTimes = Rows.prototype.writeTimes;
    Rows.prototype.writeTimes = function (slot, expires, staleUntil) {
      writeTimes.call(this, slot, expires, staleUntil);
      columns.add(this.staleUntil);
    };
    try {
      const start = clock.now();
      for (const ms of [90_900, 91_000, 90_950, 90_100]) table.put(page, "a", 1, undefined, start + ms);
      expect(page.held("a")).toBeInstanceOf(Box);
      for (let hit = 0; hit < 64; hit++) page.peek("a");
      expect(page.held("a")).toBe(1);
      expect([...columns]).toEqual([undefined]);
    } finally {
      Rows.prototype.writeTimes = writeTimes;
    }
  });
});
