import { describe, expect, test, vi } from "vitest";
import { TRACES } from "../../../../bench/hit-ratio/traces.mjs";
import { Eviction } from "../../../../src/backends/memory/eviction/eviction.ts";
import { KeyHash } from "../../../../src/backends/memory/layout/key-hash.ts";
import type { Page } from "../../../../src/backends/memory/layout/page.ts";
import { type EntryTags, Table } from "../../../../src/backends/memory/table.ts";
import { ManualClock } from "../../../../src/testing/manual-clock.ts";
import { LIVE, MortalTagSet } from "../tag-set-sample.ts";

const NEVER = Number.POSITIVE_INFINITY;

interface CacheOptions {
  readonly tagSet?: EntryTags;
  readonly maxBytes?: number;
  readonly seed?: number;
}

/** A table used as a cache: looked up, and written after a miss. */
class Cache {
  readonly table: Table<EntryTags>;
  readonly page: Page;
  readonly tagSet: EntryTags | undefined;

  constructor(maxEntries: number, { tagSet, maxBytes = NEVER, seed = 1 }: CacheOptions = {}) {
    this.table = new Table({ maxEntries, maxBytes, clock: new ManualClock(undefined, seed) });
    this.page = this.table.openPage();
    this.tagSet = tagSet;
  }

  /** Whether it was a hit. */
  request(key: string, bytes = 0): boolean {
    if (this.page.peek(key) !== undefined) return true;
    this.table.put(this.page, key, key, this.tagSet, NEVER, 0, bytes);
    return false;
  }

  /** Adds keys k0, k1 and so on until there are `count`. */
  fill(count: number): void {
    for (let at = this.page.size; at < count; at++) this.request(`k${at}`);
  }

  has(key: string): boolean {
    return this.page.held(key) !== undefined;
  }
}

function hitPercentage(trace: Uint32Array, capacity: number): number {
  const cache = new Cache(capacity);
  let hits = 0;
  for (const key of trace) if (cache.request(`item:${key}`)) hits++;
  return (100 * hits) / trace.length;
}

test.each([1, 2, 3, 4])("a scan of keys that never return leaves the hot set in place: seed %i", (seed) => {
  const cache = new Cache(1_000, { seed });
  const hot = Array.from({ length: 800 }, (_, at) => `hot ${at}`);
  for (let round = 0; round < 3; round++) for (const key of hot) cache.request(key);
  for (let at = 0; at < 50_000; at++) cache.request(`once ${at}`);
  // A few may leave: now and then a new key is mistaken for one that left too early.
  expect(hot.filter((key) => cache.has(key)).length).toBeGreaterThan(750);
});

test("a loop longer than the store keeps part of it instead of losing all", () => {
  const cache = new Cache(100);
  let hits = 0;
  for (let at = 0; at < 20_000; at++) if (cache.request(`k${at % 150}`)) hits++;
  expect(hits / 20_000).toBeGreaterThan(0.55);
});

test("a loop slightly longer than the store keeps most of it", () => {
  const cache = new Cache(1_000);
  let hits = 0;
  for (let at = 0; at < 150_000; at++) if (cache.request(`k${at % 1_100}`)) hits++;
  expect(hits / 150_000).toBeGreaterThan(0.8);
});

test("a new hot set replaces one that is no longer read", () => {
  const cache = new Cache(1_000);
  const read = (name: string): number => {
    let hits = 0;
    for (let at = 0; at < 20_000; at++) if (cache.request(`${name} ${at % 800}`)) hits++;
    return hits;
  };
  read("old");
  expect(read("new")).toBeGreaterThan(15_000);
});

test("a window that is just large enough is kept even if nothing it evicts returns", () => {
  const cache = new Cache(500);
  let hits = 0;
  // Each key is used once more, after sixty others, and never again.
  for (let at = 0; at < 60_000; at++) {
    cache.request(`k${at}`);
    if (at >= 60 && cache.request(`k${at - 60}`)) hits++;
  }
  expect(hits / 60_000).toBeGreaterThan(0.95);
});

test("keys that return sooner than others were used replace them, unless they are used less", () => {
  const cache = new Cache(500);
  let hits = 0;
  // Sets of keys take turns. Each is used often enough to be known, and too seldom to lead.
  for (let turn = 0; turn < 60; turn++) {
    for (let round = 0; round < 4; round++) {
      for (let at = 0; at < 600; at++) if (cache.request(`${turn}: ${at}`)) hits++;
    }
  }
  expect(hits / (60 * 4 * 600)).toBeGreaterThan(0.2);
});

test("the newest entry is always present, however small the store", () => {
  for (const capacity of [1, 2, 3, 7]) {
    const cache = new Cache(capacity);
    const missing: string[] = [];
    for (let at = 0; at < 500; at++) {
      const key = `k${(at * 7) % 40}`;
      cache.request(key);
      if (!cache.has(key)) missing.push(key);
    }
    expect(missing).toEqual([]);
  }
});

test("expired and dead entries are evicted before any useful one", async () => {
  const clock = new ManualClock();
  const evicted: string[] = [];
  const table = new Table<EntryTags>({
    maxEntries: 1_000,
    maxBytes: NEVER,
    clock,
    onEvict: (_, key) => evicted.push(key),
  });
  const page = table.openPage();
  const tagSet = new MortalTagSet();
  for (let at = 0; at < 1_000; at++) {
    if (at % 4 === 0) table.put(page, `expired ${at}`, at, undefined, clock.now() + 1_000);
    else if (at % 4 === 1) table.put(page, `dead ${at}`, at, tagSet, NEVER);
    else table.put(page, `good ${at}`, at, at % 4 === 2 ? LIVE : undefined, NEVER);
  }
  tagSet.live = false;
  await clock.advance(1_000);
  for (let at = 0; at < 500; at++) table.put(page, `new ${at}`, at, undefined, NEVER);
  expect(evicted).toEqual([]);
});

test.each([
  { uses: 200, known: "popular", stays: true },
  { uses: 0, known: "unknown", stays: false },
])("a key that expires is readmitted as a $known one after $uses uses", async ({ uses, stays }) => {
  const clock = new ManualClock();
  const table = new Table<EntryTags>({ maxEntries: 1_000, maxBytes: NEVER, clock });
  const page = table.openPage();
  const fill = (name: string, count: number): void => {
    for (let at = 0; at < count; at++) table.put(page, `${name} ${at}`, at, undefined, NEVER);
  };
  fill("filler", 1_100);
  table.put(page, "again", 1, undefined, clock.now() + 1_000);
  for (let use = 0; use < uses; use++) page.peek("again");
  await clock.advance(2_000);
  table.turn(1_000);
  expect(page.held("again")).toBeUndefined();
  table.put(page, "again", 2, undefined, NEVER);
  fill("flood", 3_000);
  expect(page.held("again") !== undefined).toBe(stays);
});

describe("the choice of a victim", () => {
  const NOBODY_KEPT = -1;
  const hash = new KeyHash(() => "12345678");

  /** Slots 0 to 99 taken in order, so that 99 is alone in the window and the hand is at 0. */
  function full(uses: (slot: number) => number, spent: readonly number[] = [], size = 100): Eviction {
    const eviction = new Eviction({
      hashOf: (slot) => hash.of(`k${slot}`, 0) >>> 0,
      isSpent: (slot) => spent.includes(slot),
    });
    eviction.fit(size);
    for (let slot = 0; slot < size; slot++) {
      eviction.admit(slot);
      for (let use = 0; use < uses(slot); use++) eviction.touch(slot);
    }
    return eviction;
  }

  test("falls on the newcomer while the main entries are used as much", () => {
    expect(full(() => 3).choose(NOBODY_KEPT)).toBe(99);
  });

  test("falls on a main entry with at least two uses less than the newcomer", () => {
    expect(full((slot) => (slot === 7 ? 0 : slot === 99 ? 2 : 3)).choose(NOBODY_KEPT)).toBe(7);
    expect(full((slot) => (slot === 7 ? 1 : slot === 99 ? 2 : 3)).choose(NOBODY_KEPT)).toBe(99);
  });

  test("falls on a spent newcomer, however much it was used", () => {
    expect(full((slot) => (slot === 99 ? 5 : 0), [99]).choose(NOBODY_KEPT)).toBe(99);
  });

  test("falls on a spent main entry before any other", () => {
    expect(full((slot) => (slot === 99 ? 4 : 6), [5]).choose(NOBODY_KEPT)).toBe(5);
  });

  test.each([
    { evicted: false, leaving: "expire or are deleted", chosen: "newcomer" },
    { evicted: true, leaving: "were pushed out", chosen: "main entry" },
  ])("falls on a $chosen after many keys that $leaving came back", ({ evicted, chosen }) => {
    const eviction = full(() => 6);
    eviction.leave(eviction.choose(NOBODY_KEPT), true);
    for (let round = 0; round < 50; round++) {
      eviction.leave(50, evicted);
      eviction.admit(50);
    }
    eviction.admit(99);
    for (let use = 0; use < 6; use++) eviction.touch(99);
    expect(eviction.choose(NOBODY_KEPT) === 99).toBe(chosen === "newcomer");
  });

  test("never falls on the entry to be kept", () => {
    const strongNewcomer = (slot: number): number => (slot === 99 ? 5 : 0);
    expect(full(strongNewcomer).choose(NOBODY_KEPT)).toBe(0);
    expect(full(strongNewcomer).choose(0)).toBe(1);
    expect(full((slot) => (slot === 3 ? 1 : 2)).choose(99)).toBe(3);
    expect(full((slot) => (slot === 3 ? 0 : 2), [], 4).choose(3)).not.toBe(3);
  });
});

test("an entry that is rewritten again and again counts as used", () => {
  const cache = new Cache(1_000);
  for (let at = 0; at < 1_100; at++) cache.request(`filler ${at}`);
  for (let use = 0; use < 5; use++) cache.table.put(cache.page, "written", use, undefined, NEVER);
  for (let at = 0; at < 3_000; at++) cache.request(`once ${at}`);
  expect(cache.has("written")).toBe(true);
});

describe("a hit is recorded", () => {
  test("from seven eighths of the maximum entries on, and no longer when there are fewer again", () => {
    const cache = new Cache(800);
    const { table, page } = cache;
    const recorded = vi.spyOn(table, "recordUse");
    const readAll = (): number => {
      recorded.mockClear();
      for (const key of page.keys()) page.peek(key);
      return recorded.mock.calls.length;
    };
    cache.fill(699);
    expect([table.recordsUses, readAll()]).toEqual([false, 0]);
    cache.fill(700);
    expect([table.recordsUses, readAll()]).toEqual([true, 700]);
    table.remove(page, "k0");
    expect([table.recordsUses, readAll()]).toEqual([false, 0]);
  });

  test("from seven eighths of the maximum bytes on", () => {
    const { table, page } = new Cache(800, { maxBytes: 1_000 });
    table.put(page, "a", 1, undefined, NEVER, 0, 874);
    expect(table.recordsUses).toBe(false);
    table.put(page, "a", 1, undefined, NEVER, 0, 875);
    expect(table.recordsUses).toBe(true);
    table.put(page, "a", 1, undefined, NEVER, 0, 500);
    expect(table.recordsUses).toBe(false);
    table.put(page, "b", 1, undefined, NEVER, 0, 375);
    expect(table.recordsUses).toBe(true);
    table.remove(page, "a");
    expect(table.recordsUses).toBe(false);
  });

  test("whether the entry is boxed or not, but not if it has expired or is dead", async () => {
    const clock = new ManualClock();
    const table = new Table<EntryTags>({ maxEntries: 4, maxBytes: NEVER, clock });
    const page = table.openPage();
    const tagSet = new MortalTagSet();
    table.put(page, "plain", 1, undefined, NEVER);
    table.put(page, "sealed", 1, LIVE, NEVER);
    table.put(page, "dead", 1, tagSet, NEVER);
    table.put(page, "expired", 1, undefined, clock.now() + 10);
    tagSet.live = false;
    await clock.advance(10);
    const recorded = vi.spyOn(table, "recordUse");
    for (const key of ["plain", "sealed", "dead", "expired", "missing"]) page.peek(key);
    expect(recorded.mock.calls.map(([, key]) => key)).toEqual(["plain", "sealed"]);
  });

  test("so that busy keys survive when a new hot set replaces idle ones", () => {
    const cache = new Cache(1_000);
    cache.fill(1_000);
    const busy = [7, 107, 207, 307, 407, 507, 607, 707, 807, 907].map((at) => `k${at}`);
    for (let at = 0; at < 20_000; at++) {
      cache.request(`new ${at % 800}`);
      if (at % 20 === 0) cache.page.peek(busy[(at / 20) % busy.length] as string);
    }
    expect(busy.filter((key) => !cache.has(key))).toEqual([]);
    const idle = Array.from({ length: 1_000 }, (_, at) => `k${at}`).filter((key) => cache.has(key));
    expect(idle.length).toBeLessThan(300);
  });

  test("to no effect if its page is cleared while it waits in the log", () => {
    const { table, page } = new Cache(10);
    const other = table.openPage();
    for (let at = 0; at < 10; at++) table.put(at % 2 === 0 ? page : other, `k${at}`, at, undefined, NEVER);
    for (let use = 0; use < 100; use++) page.peek("k0");
    table.clear(page);
    for (let at = 0; at < 40; at++) table.put(other, `new ${at}`, at, undefined, NEVER);
    expect([table.size, page.size, other.size]).toEqual([10, 0, 10]);
  });
});

describe("the work of an operation is bounded", () => {
  test("a hot key read a million times changes no Map and checks no entry", () => {
    const tagSet = new MortalTagSet();
    const cache = new Cache(100, { tagSet });
    cache.table.put(cache.page, "hot", 1, undefined, NEVER);
    for (let at = 0; at < 99; at++) cache.request(`k${at}`);
    const added = vi.spyOn(Map.prototype, "set");
    const deleted = vi.spyOn(Map.prototype, "delete");
    tagSet.asked = 0;
    for (let read = 0; read < 1_000_000; read++) cache.page.peek("hot");
    const work = added.mock.calls.length + deleted.mock.calls.length + tagSet.asked;
    vi.restoreAllMocks();
    expect(work).toBe(0);
    cache.request("next");
    expect(tagSet.asked).toBeLessThan(30);
  });

  test.each(TRACES)("no insertion examines more than a few entries: $name", ({ make }) => {
    const tagSet = new MortalTagSet();
    const cache = new Cache(200, { tagSet });
    let most = 0;
    for (const key of make(10_000)) {
      tagSet.asked = 0;
      cache.request(`item:${key}`);
      most = Math.max(most, tagSet.asked);
    }
    expect(most).toBeLessThan(30);
  });

  test("entries that are written and deleted over and over leave nothing behind", () => {
    const cache = new Cache(1_000, { tagSet: LIVE });
    for (let at = 0; at < 1_500; at++) cache.request(`k${at}`);
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < 60_000; at++) {
      cache.request("again");
      cache.table.remove(cache.page, "again");
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100_000);
    expect(cache.table.size).toBe(999);
    expect(cache.table.sweepLength).toBe(1_000);
  });

  test("a large entry makes room where main entries are few and far between", () => {
    const cache = new Cache(10_000, { maxBytes: 10_000 });
    for (let at = 0; at < 10_000; at++) cache.request(`k${at}`, 1);
    for (let at = 0; at < 10_000; at++) if (at % 2_000 !== 0) cache.table.remove(cache.page, `k${at}`);
    for (let at = 0; at < 50; at++) {
      cache.request(`large ${at}`, 4_000);
      if (at % 3 === 0) cache.table.remove(cache.page, `large ${at}`);
      expect(cache.table.bytes).toBeLessThanOrEqual(10_000);
    }
  });
});

// Measured with this code, rounded down; node bench/hit-ratio/run.mjs has the full traces and the peers.
const REACHED: readonly [name: string, percentage: number][] = [
  ["Zipf 0.9", 44.8],
  ["Zipf 1.0", 59.6],
  ["Zipf + scans", 47.4],
  ["shifting Zipf", 58],
  ["loop", 52.6],
  ["loop + Zipf", 49.1],
  ["fast shift", 53.5],
  ["drift", 40.3],
  ["recent keys", 68.4],
];

test.each(REACHED)("the hit ratio on a short trace does not fall: %s", (name, percentage) => {
  const trace = TRACES.find((candidate) => candidate.name === name);
  const ratio = hitPercentage(trace?.make(150_000) ?? new Uint32Array(1), 1_000);
  expect(ratio).toBeGreaterThanOrEqual(percentage);
  // If the ratio is far above the figure, raise the figure.
  expect(ratio).toBeLessThan(percentage + 1);
});
