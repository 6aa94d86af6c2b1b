import { describe, expect, test, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { Box, heldValue } from "../../../src/backends/memory/layout/box.ts";
import { KeyHash } from "../../../src/backends/memory/layout/key-hash.ts";
import type { Page } from "../../../src/backends/memory/layout/page.ts";
import { Rows } from "../../../src/backends/memory/layout/rows.ts";
import { type EntryTags, Table } from "../../../src/backends/memory/table.ts";
import type { BackendHost } from "../../../src/core/backend.ts";
import type { StoreRecord } from "../../../src/core/record.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import { expectSame } from "../../support/same.ts";
import { LIVE, MortalTagSet } from "./tag-set-sample.ts";

const NEVER = Number.POSITIVE_INFINITY;
const clock = new ManualClock();
const HOST: BackendHost = {
  clock,
  operationTimeoutMs: 1_000,
  connectTimeoutMs: 1_000,
  poolSize: 1,
  report: () => {},
  evicted: () => {},
  onServer: async () => {},
};

interface Bounds {
  readonly maxEntries?: number;
  readonly maxBytes?: number;
  readonly onEvict?: (page: Page, key: string) => void;
}

function open({ maxEntries = 1_000, maxBytes = NEVER, onEvict }: Bounds = {}): Table<EntryTags> {
  return new Table({ maxEntries, maxBytes, clock, ...(onEvict === undefined ? {} : { onEvict }) });
}

function store(table: Table<EntryTags>, page: Page, key: string, value: unknown, bytes = 0): boolean {
  return table.put(page, key, value, undefined, NEVER, 0, bytes);
}

const storedValue = (page: Page, key: string): unknown => heldValue(page.held(key));

describe("an entry", () => {
  test("holds what was stored, and reports omitted fields as such", () => {
    const table = open();
    const page = table.openPage();
    const expires = clock.now() + 20_000;
    expect(table.put(page, "a", 1, undefined, expires)).toBe(true);
    expect(page.peek("a")).toBe(1);
    expect(table.find(page, "a")).toEqual({ value: 1, tagSet: undefined, expires, staleUntil: expires });
    expect(table.put(page, "b", 2, LIVE, expires, 5_000)).toBe(true);
    expect(table.find(page, "b")).toEqual({ value: 2, tagSet: LIVE, expires, staleUntil: expires + 5_000 });
    expect([table.size, table.bytes, page.size]).toEqual([2, 0, 2]);
    expect([page.peek("c"), table.find(page, "c")]).toEqual([undefined, undefined]);
  });

  test("takes all the new fields when its key is rewritten", () => {
    const table = open({ maxBytes: 1_000 });
    const page = table.openPage();
    table.put(page, "a", 1, LIVE, clock.now() + 1, 8, 10);
    const tagSet = new MortalTagSet();
    expect(table.put(page, "a", 2, tagSet, NEVER, 0, 30)).toBe(true);
    expect(table.find(page, "a")).toEqual({ value: 2, tagSet, expires: NEVER, staleUntil: NEVER });
    expect([table.size, table.bytes, page.size]).toEqual([1, 30, 1]);
    expect(table.put(page, "a", 3, undefined, clock.now() + 9_000, 0, 5)).toBe(true);
    const expires = clock.now() + 9_000;
    expect(table.find(page, "a")).toEqual({ value: 3, tagSet: undefined, expires, staleUntil: expires });
    expect([table.size, table.bytes]).toEqual([1, 5]);
    tagSet.live = false;
    expect(page.peek("a")).toBe(3);
  });

  test("that was stored before any stale time was given is stale when it expires", () => {
    const table = open();
    const page = table.openPage();
    table.put(page, "plain", 1, undefined, clock.now() + 5_000);
    table.put(page, "stale", 1, undefined, clock.now() + 5_000, 4_000);
    expect(table.find(page, "plain")?.staleUntil).toBe(clock.now() + 5_000);
    expect(table.find(page, "stale")?.staleUntil).toBe(clock.now() + 9_000);
  });

  test("is found with any value except undefined", () => {
    const table = open();
    const page = table.openPage();
    for (const tagSet of [undefined, LIVE]) {
      for (const value of [null, 0, "", false, Number.NaN]) {
        table.put(page, "a", value, tagSet, NEVER);
        expect([page.peek("a"), table.find(page, "a")?.value]).toEqual([value, value]);
        table.remove(page, "a");
      }
    }
  });

  test("that is dead is not found, fresh or stale, and can be removed once", () => {
    const table = open();
    const page = table.openPage();
    const tagSet = new MortalTagSet();
    table.put(page, "a", 1, tagSet, NEVER, 1_000);
    tagSet.live = false;
    expect([page.peek("a"), table.find(page, "a")]).toEqual([undefined, undefined]);
    expect([table.remove(page, "a"), table.remove(page, "a")]).toEqual([true, false]);
  });

  test("that is gone leaves no trace in its place", () => {
    const table = open({ maxBytes: 100 });
    const page = table.openPage();
    store(table, page, "stays", 0, 1);
    const tagSet = new MortalTagSet();
    table.put(page, "goes", { large: true }, tagSet, clock.now() + 1_000, 9_000, 60);
    table.remove(page, "goes");
    tagSet.live = false;
    store(table, page, "next", 1, 2);
    expect(table.find(page, "next")).toEqual({
      value: 1,
      tagSet: undefined,
      expires: NEVER,
      staleUntil: NEVER,
    });
    expect([table.size, table.bytes, page.held("goes")]).toEqual([2, 3, undefined]);
  });
});

describe("bytes", () => {
  test("are not counted without a bound on them", () => {
    const table = open();
    const page = table.openPage();
    for (const bytes of [10, 20, 5]) store(table, page, "a", 1, bytes);
    expect(table.bytes).toBe(0);
    table.remove(page, "a");
    expect(table.bytes).toBe(0);
  });

  test("follow every write and removal, and return to zero", async () => {
    const table = open({ maxBytes: 10_000 });
    const page = table.openPage();
    const other = table.openPage();
    store(table, page, "a", 1, 100);
    store(table, other, "a", 1, 10.2);
    expect(table.bytes).toBe(111);
    store(table, page, "a", 1, 40);
    store(table, page, "a", 1, 0);
    store(table, page, "a", 1, 70);
    expect(table.bytes).toBe(81);
    table.put(page, "short", 1, undefined, clock.now() + 1_000, 0, 500);
    await clock.advance(3_000);
    table.turn(10);
    expect(table.bytes).toBe(81);
    table.clear(page);
    table.turn(10);
    expect(table.bytes).toBe(11);
    table.remove(other, "a");
    expect([table.bytes, table.size]).toEqual([0, 0]);
  });

  test("of an entry that grows push out others, never itself, and stay within the bound", () => {
    const evicted: string[] = [];
    const table = open({ maxBytes: 100, onEvict: (_, key) => evicted.push(key) });
    const page = table.openPage();
    for (const key of ["a", "b", "c", "d"]) store(table, page, key, key, 25);
    for (const bytes of [30, 60, 100, 1, 100]) {
      store(table, page, "a", "grown", bytes);
      expect(table.bytes).toBeLessThanOrEqual(100);
      expect(page.peek("a")).toBe("grown");
    }
    expect(evicted.toSorted()).toEqual(["b", "c", "d"]);
    expect([table.size, table.bytes]).toEqual([1, 100]);
  });

  test("beyond what a row can represent count as that maximum", () => {
    const table = open({ maxBytes: 2 ** 40 });
    const page = table.openPage();
    store(table, page, "a", 1, 2 ** 36);
    store(table, page, "b", 1, 2 ** 36);
    expect(table.bytes).toBe(2 * 0xffff_ffff);
    store(table, page, "a", 1, 7);
    table.remove(page, "b");
    expect(table.bytes).toBe(7);
  });
});

describe("pages", () => {
  test("share the bounds and nothing else: one key in each is a separate entry", () => {
    const table = open({ maxEntries: 10 });
    const first = table.openPage();
    const second = table.openPage();
    store(table, first, "a", "first");
    store(table, second, "a", "second");
    expect([first.peek("a"), second.peek("a")]).toEqual(["first", "second"]);
    expect(table.remove(first, "a")).toBe(true);
    expect([first.peek("a"), second.peek("a")]).toEqual([undefined, "second"]);
    table.remove(second, "a");
    for (let at = 0; at < 50; at++) store(table, at % 2 === 0 ? first : second, `k${at}`, at);
    expect(first.size + second.size).toBe(10);
    for (const page of [first, second]) {
      for (const key of page.keys()) expect(storedValue(page, key)).toBe(Number(key.slice(1)));
    }
  });

  test("are named for the entries that were evicted from them", () => {
    const evicted: [Page, string][] = [];
    const table = open({ maxEntries: 1, onEvict: (page, key) => evicted.push([page, key]) });
    const pages = [table.openPage(), table.openPage(), table.openPage()];
    for (const page of pages) store(table, page, "a", 1);
    expect(evicted.map(([, key]) => key)).toEqual(["a", "a"]);
    expect(evicted[0]?.[0]).toBe(pages[0]);
    expect(evicted[1]?.[0]).toBe(pages[1]);
  });

  test("can be emptied without touching the others", () => {
    const table = open({ maxBytes: 10_000 });
    const kept = table.openPage();
    const emptied = table.openPage();
    for (let at = 0; at < 300; at++) {
      store(table, kept, `k${at}`, at, 1);
      store(table, emptied, `k${at}`, -at, 1);
    }
    table.clear(emptied);
    expect([kept.size, emptied.size, emptied.peek("k7")]).toEqual([300, 0, undefined]);
    store(table, emptied, "k7", "again", 1);
    expect(table.turn(1_000)).toBe(true);
    expect([kept.size, emptied.size, table.size, table.bytes]).toEqual([300, 1, 301, 301]);
    for (const key of kept.keys()) expect(`k${storedValue(kept, key)}`).toBe(key);
    expect(emptied.peek("k7")).toBe("again");
  });

  test("that were emptied free their room before anything is evicted", () => {
    const evicted: string[] = [];
    const table = open({ maxEntries: 100, maxBytes: 1_000, onEvict: (_, key) => evicted.push(key) });
    const page = table.openPage();
    const other = table.openPage();
    for (let at = 0; at < 100; at++) store(table, at < 60 ? page : other, `k${at}`, at, 10);
    table.clear(page);
    store(table, page, "large", 1, 590);
    expect([evicted, table.bytes <= 1_000]).toEqual([[], true]);
    store(table, page, "small", 1, 10);
    expect([evicted, page.size, other.size]).toEqual([[], 2, 40]);
    store(table, page, "one more", 1, 10);
    expect(evicted).toHaveLength(1);
  });

  test("can be emptied, filled and emptied again before anything is reclaimed", () => {
    const table = open();
    const page = table.openPage();
    for (let round = 0; round < 5; round++) {
      for (let at = 0; at < 10; at++) store(table, page, `k${at}`, round);
      expect([page.size, page.peek("k3")]).toEqual([10, round]);
      table.clear(page);
    }
    store(table, page, "k3", "last");
    table.turn(1_000);
    expect([table.size, page.size, page.peek("k3")]).toEqual([1, 1, "last"]);
  });

  test("that are emptied over and over start empty and use few numbers", () => {
    const table = open();
    const others = table.openPage();
    store(table, others, "a", 1);
    const page = table.openPage();
    for (let round = 0; round < 50; round++) {
      expect(page.size).toBe(0);
      store(table, page, "a", round);
      expect(page.peek("a")).toBe(round);
      expect(page.number).toBeLessThan(3);
      table.clear(page);
      table.turn(10);
    }
    expect([table.size, others.size, others.peek("a")]).toEqual([1, 1, 1]);
  });

  test("can be more than fit a small integer", () => {
    const table = open({ maxEntries: 70_000 });
    const pages = Array.from({ length: 66_000 }, () => table.openPage());
    for (const at of [0, 1, 65_535, 65_536, 65_999]) store(table, pages[at] as Page, "a", at);
    for (const at of [0, 1, 65_535, 65_536, 65_999]) {
      const page = pages[at] as Page;
      expect(table.find(page, "a")?.value).toBe(at);
      table.remove(page, "a");
      expect(page.size).toBe(0);
    }
  });
});

describe("growth", () => {
  test("keeps every entry with all its fields", () => {
    const table = open({ maxEntries: 5_000, maxBytes: Number.MAX_SAFE_INTEGER });
    const pages = [table.openPage(), table.openPage()];
    const tagSet = new MortalTagSet();
    const fields = (at: number) => ({
      value: at,
      tagSet: at % 3 === 0 ? tagSet : undefined,
      expires: at % 5 === 0 ? NEVER : clock.now() + 10_000 + at * 997,
    });
    for (let at = 0; at < 5_000; at++) {
      const { value, tagSet: its, expires } = fields(at);
      table.put(pages[at % 2] as Page, `k${at}`, value, its, expires, at, at);
    }
    expect(table.size).toBe(5_000);
    const wrong: string[] = [];
    for (const page of pages) {
      for (const key of page.keys()) {
        const at = Number(key.slice(1));
        const { value, tagSet: its, expires } = fields(at);
        const found = table.find(page, key);
        if (found?.value !== value || found.tagSet !== its || found.expires !== expires) wrong.push(key);
        if (found?.staleUntil !== expires + at) wrong.push(`${key} stale`);
      }
    }
    expect(wrong).toEqual([]);
    for (const page of pages) table.clear(page);
    table.turn(10_000);
    expect([table.size, table.bytes]).toEqual([0, 0]);
  });

  test("is undone when the table is empty: it starts at its first rows again, without seals and stale times", () => {
    const table = open({ maxEntries: 10_000_000 });
    const page = table.openPage();
    for (let at = 0; at < 3_000; at++) table.put(page, `k${at}`, at, LIVE, NEVER, 1_000);
    expect([table.sweepLength, table.needsTending]).toEqual([3_000, true]);
    for (let at = 0; at < 3_000; at++) table.remove(page, `k${at}`);
    expect([table.size, table.sweepLength, table.needsTending]).toEqual([0, 0, false]);
    store(table, page, "again", 1);
    expect([page.peek("again"), table.needsTending]).toEqual([1, false]);
    table.put(page, "sealed", 1, LIVE, NEVER);
    expect(table.sweepLength).toBe(2);
    expect(table.find(page, "again")).toEqual({
      value: 1,
      tagSet: undefined,
      expires: NEVER,
      staleUntil: NEVER,
    });
  });

  test("is also undone when a cleared page was all there was, and the page can be used immediately", () => {
    const table = open({ maxEntries: 10_000 });
    const page = table.openPage();
    for (let at = 0; at < 3_000; at++) table.put(page, `k${at}`, at, LIVE, clock.now() + 60_000);
    table.clear(page);
    table.turn(10_000);
    expect([table.size, table.sweepLength, table.needsTending]).toEqual([0, 0, false]);
    for (let at = 0; at < 3_000; at++) store(table, page, `k${at}`, at);
    expect([page.size, page.peek("k2999")]).toEqual([3_000, 2_999]);
  });
});

describe("an entry larger than the table", () => {
  test("is rejected, evicts nothing and leaves no older value behind", () => {
    const evicted: string[] = [];
    const table = open({ maxBytes: 100, onEvict: (_, key) => evicted.push(key) });
    const page = table.openPage();
    store(table, page, "a", 1, 40);
    store(table, page, "b", 1, 40);
    expect(store(table, page, "c", 1, 101)).toBe(false);
    expect(store(table, page, "a", 2, 100.5)).toBe(false);
    expect([...page.keys()]).toEqual(["b"]);
    expect([evicted, table.bytes]).toEqual([[], 40]);
    expect(store(table, page, "c", 1, 100)).toBe(true);
    expect(evicted).toEqual(["b"]);
  });
});

describe("onEvict", () => {
  test("is called for entries that made room, not for removed, expired, dead or cleared ones", async () => {
    const evicted: string[] = [];
    const table = open({ maxEntries: 3, onEvict: (_, key) => evicted.push(key) });
    const page = table.openPage();
    const cleared = table.openPage();
    const tagSet = new MortalTagSet();
    table.put(page, "dead", 1, tagSet, NEVER);
    table.put(page, "expired", 1, undefined, clock.now() + 1_000);
    store(table, cleared, "cleared", 1);
    tagSet.live = false;
    table.clear(cleared);
    await clock.advance(1_000);
    for (const key of ["a", "b", "c"]) store(table, page, key, 1);
    table.remove(page, "a");
    store(table, page, "d", 1);
    expect(evicted).toEqual([]);
    expect(page.size).toBe(3);
    store(table, page, "e", 1);
    expect(evicted).toHaveLength(1);
    expect(page.held(evicted[0] as string)).toBeUndefined();
  });

  test("is called for entries that are stale but still usable", async () => {
    const evicted: string[] = [];
    const table = open({ maxEntries: 1, onEvict: (_, key) => evicted.push(key) });
    const page = table.openPage();
    table.put(page, "stale", 1, undefined, clock.now() + 1_000, 60_000);
    await clock.advance(30_000);
    store(table, page, "a", 1);
    expect(evicted).toEqual(["stale"]);
  });

  test("is called when the table is consistent again", () => {
    const seen: unknown[] = [];
    const table: Table<EntryTags> = open({
      maxBytes: 100,
      onEvict: (page, key) => seen.push([table.bytes, page.held(key), page.peek("large")]),
    });
    const page = table.openPage();
    for (const key of ["a", "b"]) store(table, page, key, 1, 50);
    store(table, page, "large", "new", 90);
    expect(seen).toEqual([
      [90, undefined, "new"],
      [90, undefined, "new"],
    ]);
  });

  test("may write to the table itself", () => {
    const table: Table<EntryTags> = open({
      maxEntries: 3,
      onEvict: (page, key) => {
        if (!key.startsWith("again")) store(table, page, `again ${key}`, key);
      },
    });
    const page = table.openPage();
    for (let at = 0; at < 20; at++) store(table, page, `k${at}`, `k${at}`);
    expect([table.size, page.size]).toEqual([3, 3]);
    for (const key of page.keys()) expect(key.endsWith(String(storedValue(page, key)))).toBe(true);
  });
});

describe("a box", () => {
  const isBoxed = (page: Page, key: string): boolean => page.held(key) instanceof Box;

  test("is not needed for a new entry that is far from its expiry", () => {
    const table = open();
    const page = table.openPage();
    table.put(page, "never", 1, undefined, NEVER);
    table.put(page, "far", 1, undefined, clock.now() + 60_000);
    table.put(page, "near", 1, undefined, clock.now() + 3_000);
    table.put(page, "sealed", 1, LIVE, NEVER);
    expect(["never", "far", "near", "sealed"].map((key) => isBoxed(page, key))).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  test("wraps a rewritten entry, and is gone when that is read more often than written", () => {
    const table = open();
    const page = table.openPage();
    for (const expires of [NEVER, clock.now() + 60_000]) {
      const key = `k${expires}`;
      table.put(page, key, 1, undefined, expires);
      table.put(page, key, 2, undefined, expires);
      expect(isBoxed(page, key)).toBe(true);
      for (let hit = 0; hit < 16; hit++) expect(page.peek(key)).toBe(2);
      expect([isBoxed(page, key), page.peek(key)]).toEqual([false, 2]);
      expect(table.find(page, key)).toEqual({ value: 2, tagSet: undefined, expires, staleUntil: expires });
    }
  });

  test("stays around an entry that has a seal or is near its expiry, however often it is read", () => {
    const table = open();
    const page = table.openPage();
    table.put(page, "sealed", 1, LIVE, NEVER);
    table.put(page, "near", 1, undefined, clock.now() + 3_000);
    for (let hit = 0; hit < 100; hit++) for (const key of ["sealed", "near"]) expect(page.peek(key)).toBe(1);
    expect([isBoxed(page, "sealed"), isBoxed(page, "near")]).toEqual([true, true]);
  });

  test("saves all lookups and its row when a key is rewritten over and over", () => {
    const table = open();
    const page = table.openPage();
    table.put(page, "a", 0, undefined, clock.now() + 60_000);
    const hashed = vi.spyOn(KeyHash.prototype, "of");
    const written = vi.spyOn(Rows.prototype, "writeTimes");
    for (let at = 1; at <= 100; at++)
      expect(table.renew(page, "a", at, clock.now() + 60_000 + at)).toBe(true);
    const work = [hashed.mock.calls.length, written.mock.calls.length];
    vi.restoreAllMocks();
    expect(work).toEqual([0, 0]);
    expect([page.peek("a"), table.find(page, "a")?.expires, table.size]).toEqual([
      100,
      clock.now() + 60_100,
      1,
    ]);
  });
});

describe("rewriting in place", () => {
  test("is refused for an absent key, and if an entry has more than its box", () => {
    const table = open();
    const page = table.openPage();
    expect(table.renew(page, "a", 1, NEVER)).toBe(false);
    expect(page.held("a")).toBeUndefined();
    table.put(page, "a", 1, LIVE, NEVER);
    expect(table.renew(page, "a", 2, NEVER)).toBe(false);
    expect([page.peek("a"), table.find(page, "a")?.tagSet]).toEqual([1, LIVE]);
  });

  test("is left to `put` if the entry would expire earlier than before", () => {
    const table = open();
    const page = table.openPage();
    table.put(page, "a", 0, undefined, clock.now() + 60_000);
    expect(table.renew(page, "a", 1, clock.now() + 60_000)).toBe(true);
    expect(table.renew(page, "a", 2, clock.now() + 1_000)).toBe(false);
    expect(table.put(page, "a", 2, undefined, clock.now() + 1_000)).toBe(true);
    expect(table.find(page, "a")).toMatchObject({ value: 2, expires: clock.now() + 1_000 });
  });
});

describe("hits on an unboxed entry", () => {
  const READING = 32;

  class QuickClock extends ManualClock {
    readonly hitsPerReading = READING;
  }

  function openWithReadings(): { clock: QuickClock; table: Table<EntryTags>; page: Page } {
    const clock = new QuickClock();
    const table = new Table<EntryTags>({ maxEntries: 10, maxBytes: NEVER, clock });
    table.onOccupied = () => {};
    const page = table.openPage();
    table.put(page, "a", 1, undefined, clock.now() + 60_000);
    return { clock, table, page };
  }

  test("read the clock once per `hitsPerReading` hits", () => {
    const { clock, page } = openWithReadings();
    const read = vi.spyOn(clock, "now");
    for (let hit = 0; hit < 10 * READING; hit++) expectSame(page.peek("a"), 1);
    expect(read).toHaveBeenCalledTimes(10);
  });

  test("notice within `hitsPerReading` hits that it expired while the timer was late", async () => {
    const { clock, page } = openWithReadings();
    page.peek("a");
    await clock.advance(60_000);
    const seen = Array.from({ length: READING }, () => page.peek("a"));
    expect(seen.at(-1)).toBeUndefined();
  });

  test("read the clock every time while nobody tends the table", async () => {
    const { clock, table, page } = openWithReadings();
    table.onOccupied = undefined;
    expect(page.peek("a")).toBe(1);
    await clock.advance(60_000);
    expect(page.peek("a")).toBeUndefined();
  });

  test("of a store that was left alone between two connections never return an expired value", async () => {
    const clock = new QuickClock();
    await using cache = cacheWithClock({ backend: new MemoryBackend() }, clock);
    await cache.set("a", 1, { ttl: 60 });
    expect(await cache.get("a")).toBe(1);
    await cache.disconnect();
    await clock.advance(3_600_000);
    await cache.connect();
    expect(await cache.get("a")).toBeUndefined();
  });

  test("on records, which nobody tends, never return an expired value", async () => {
    const clock = new QuickClock();
    const backend = new MemoryBackend();
    backend.open({ ...HOST, clock });
    const record: StoreRecord = { kind: "stamp", version: "12345678", expires: NEVER };
    await backend.write({ key: "a", record, lifetimeMs: 60_000 });
    expect(await backend.read("a")).toEqual(record);
    await clock.advance(60_000);
    expect([await backend.read("a"), await backend.take("a")]).toEqual([undefined, undefined]);
  });

  test("are each examined more closely once the table is so full that uses are recorded", () => {
    const { table, page } = openWithReadings();
    page.peek("a");
    for (let at = 0; at < 9; at++) store(table, page, `k${at}`, at);
    const recorded = vi.spyOn(table, "recordUse");
    for (let hit = 0; hit < READING; hit++) page.peek("a");
    expect(recorded).toHaveBeenCalledTimes(READING);
  });

  /** Full, and read so often that most uses are not recorded. */
  function openFull(): { clock: QuickClock; table: Table<EntryTags>; page: Page } {
    const opened = openWithReadings();
    for (let at = 0; at < 9; at++) store(opened.table, opened.page, `k${at}`, at);
    for (let hit = 0; hit < 20_000; hit++) opened.page.peek("a");
    return opened;
  }

  test("of a full table are recorded about once in sixty-four, and read the clock as seldom as others", () => {
    const { clock, table, page } = openFull();
    const recorded = vi.spyOn(table, "recordUse");
    const read = vi.spyOn(clock, "now");
    for (let hit = 0; hit < 1_000 * READING; hit++) expectSame(page.peek("a"), 1);
    expect(recorded.mock.calls.length).toBeGreaterThan(400);
    expect(recorded.mock.calls.length).toBeLessThan(600);
    expect(read.mock.calls.length).toBeGreaterThanOrEqual(1_000);
    expect(read.mock.calls.length).toBeLessThanOrEqual(1_001);
  });

  test("of a full table notice within `hitsPerReading` hits that it expired while the timer was late", async () => {
    for (let before = 0; before < 2 * READING; before++) {
      const { clock, page } = openFull();
      for (let hit = 0; hit < before; hit++) page.peek("a");
      await clock.advance(60_000);
      const seen = Array.from({ length: READING }, () => page.peek("a"));
      expect(seen.at(-1)).toBeUndefined();
    }
  });
});

describe("an iteration over a page", () => {
  test("visits every entry that is present from its beginning to its end, whatever else changes", () => {
    const table = open({ maxEntries: 5_000 });
    const page = table.openPage();
    for (let at = 0; at < 600; at++) store(table, page, `k${at}`, at);
    for (let at = 0; at < 200; at++) table.remove(page, `k${at}`);
    const stayed = new Set(page.keys());
    const met = new Set<string>();
    let turn = 0;
    for (const key of page.keys()) {
      met.add(key);
      const victim = `k${200 + ((turn * 5) % 133) * 3}`;
      table.remove(page, victim);
      stayed.delete(victim);
      store(table, page, `k${turn % 200}`, "back");
      store(table, page, `new ${turn++}`, 0);
      store(table, page, key, "rewritten");
    }
    expect(stayed.size).toBe(267);
    for (const key of stayed) expect(met).toContain(key);
    expect(page.size).toBe([...page.keys()].length);
  });

  test("ends even if every step adds an entry", () => {
    const table = open({ maxEntries: 5_000 });
    const page = table.openPage();
    for (let at = 0; at < 100; at++) store(table, page, `k${at}`, at);
    let turns = 0;
    for (const _ of page.keys()) store(table, page, `new ${turns++}`, 0);
    expect(turns).toBe(100);
  });

  test("neither visits nor counts keys that were removed", () => {
    const table = open();
    const page = table.openPage();
    for (const key of ["a", "b", "c"]) store(table, page, key, key);
    table.remove(page, "b");
    expect([...page.keys()]).toEqual(["a", "c"]);
    expect([page.size, page.held("b"), page.peek("b")]).toEqual([2, undefined, undefined]);
    store(table, page, "b", "back");
    expect([page.size, [...page.keys()].toSorted()]).toEqual([3, ["a", "b", "c"]]);
    for (const key of ["a", "b", "c"]) table.remove(page, key);
    expect([page.size, [...page.keys()]]).toEqual([0, []]);
  });
});

test("a key that is set and deleted over and over leaves few deleted entries in the Map, which each miss would walk", () => {
  const table = open({ maxEntries: 20_000 });
  const page = table.openPage();
  for (let at = 0; at < 10_000; at++) store(table, page, `k${at}`, at);
  const deleted = vi.spyOn(Map.prototype, "delete");
  for (let at = 0; at < 10_000; at++) {
    store(table, page, "a", at);
    table.remove(page, "a");
    store(table, page, "b", at);
    table.remove(page, "b");
  }
  const deletions = deleted.mock.calls.length;
  vi.restoreAllMocks();
  expect(deletions).toBeLessThan(200);
  expect(page.size).toBe(10_000);
});

test("keys that were removed for good do not stay", () => {
  const table = open({ maxEntries: 20_000 });
  const page = table.openPage();
  store(table, page, "stays", 1);
  const deleted = vi.spyOn(Map.prototype, "delete");
  for (let at = 0; at < 5_000; at++) {
    store(table, page, `k${at}`, at);
    table.remove(page, `k${at}`);
  }
  const deletions = deleted.mock.calls.length;
  vi.restoreAllMocks();
  expect(deletions).toBeGreaterThan(4_800);
});
