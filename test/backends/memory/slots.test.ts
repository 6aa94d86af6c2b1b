import { describe, expect, test, vi } from "vitest";
import { type SlotIndex, type SlotSeal, Slots } from "../../../src/backends/memory/slots.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LIVE, MortalSeal } from "./seal.ts";

const NEVER = Number.POSITIVE_INFINITY;
const clock = new ManualClock();

interface Bounds {
  readonly maxEntries?: number;
  readonly maxBytes?: number;
  readonly onEvict?: (index: SlotIndex, key: string) => void;
}

function open({ maxEntries = 1_000, maxBytes = NEVER, onEvict }: Bounds = {}): Slots<SlotSeal> {
  return new Slots({ maxEntries, maxBytes, clock, ...(onEvict === undefined ? {} : { onEvict }) });
}

function store(slots: Slots<SlotSeal>, index: SlotIndex, key: string, value: unknown, bytes = 0): number {
  return slots.put(index, key, value, LIVE, clock.now(), NEVER, NEVER, bytes);
}

describe("a slot", () => {
  test("holds what was put, and the columns that were not written say so", () => {
    const slots = open();
    const index = slots.openIndex();
    const slot = slots.put(index, "a", 1, LIVE, 7_900, 20_000);
    expect(index.get("a")).toBe(slot);
    expect(slots.values[slot]).toBe(1);
    expect(slots.seals[slot]).toBe(LIVE);
    expect(slots.expires[slot]).toBe(20_000);
    expect(slots.staleUntilOf(slot)).toBe(20_000);
    expect(slots.createdOf(slot)).toBe(7_000);
    expect(slots.bytes).toBe(0);
  });

  test("keeps its number and takes all the new fields when its key is written again", () => {
    const slots = open();
    const index = slots.openIndex();
    const slot = slots.put(index, "a", 1, LIVE, 0, clock.now() + 1, clock.now() + 9, 10);
    const seal = new MortalSeal();
    expect(slots.put(index, "a", 2, seal, 5_000, NEVER, NEVER, 30)).toBe(slot);
    expect(slots.values[slot]).toBe(2);
    expect(slots.seals[slot]).toBe(seal);
    expect(slots.createdOf(slot)).toBe(5_000);
    expect(slots.staleUntilOf(slot)).toBe(NEVER);
    expect([slots.size, slots.bytes]).toEqual([1, 30]);
  });

  test("that was stored before any stale time was given is stale when it expires", () => {
    const slots = open();
    const index = slots.openIndex();
    const plain = slots.put(index, "plain", 1, LIVE, 0, clock.now() + 5_000);
    const stale = slots.put(index, "stale", 1, LIVE, 0, clock.now() + 5_000, clock.now() + 9_000);
    expect(slots.staleUntilOf(plain)).toBe(clock.now() + 5_000);
    expect(slots.staleUntilOf(stale)).toBe(clock.now() + 9_000);
  });

  test("that is free holds on to nothing", () => {
    const slots = open();
    const index = slots.openIndex();
    store(slots, index, "stays", 0);
    const slot = store(slots, index, "goes", { large: true });
    slots.remove(index, "goes");
    expect(slots.values[slot]).toBeUndefined();
    expect(slots.seals[slot]).toBeUndefined();
    expect(store(slots, index, "next", 1)).toBe(slot);
  });
});

describe("indexes", () => {
  test("share the bounds and nothing else: one key in each is an entry of its own", () => {
    const slots = open({ maxEntries: 10 });
    const first = slots.openIndex();
    const second = slots.openIndex();
    store(slots, first, "a", "first");
    store(slots, second, "a", "second");
    expect(slots.values[first.get("a") as number]).toBe("first");
    expect(slots.values[second.get("a") as number]).toBe("second");
    expect(slots.remove(first, "a")).toBe(true);
    expect(second.has("a")).toBe(true);
    slots.remove(second, "a");
    for (let at = 0; at < 50; at++) store(slots, at % 2 === 0 ? first : second, `k${at}`, at);
    expect(first.size + second.size).toBe(10);
    for (const index of [first, second]) {
      for (const [key, slot] of index) expect(slots.values[slot]).toBe(Number(key.slice(1)));
    }
  });

  test("name the index that an evicted entry was in", () => {
    const evicted: [SlotIndex, string][] = [];
    const slots = open({ maxEntries: 1, onEvict: (index, key) => evicted.push([index, key]) });
    const indexes = [slots.openIndex(), slots.openIndex(), slots.openIndex()];
    for (const index of indexes) store(slots, index, "a", 1);
    expect(evicted).toEqual([
      [indexes[0], "a"],
      [indexes[1], "a"],
    ]);
    expect(evicted[1]?.[0]).toBe(indexes[1]);
  });

  test("can be emptied without touching the others", () => {
    const slots = open();
    const kept = slots.openIndex();
    const emptied = slots.openIndex();
    for (let at = 0; at < 300; at++) {
      store(slots, kept, `k${at}`, at, 1);
      store(slots, emptied, `k${at}`, -at, 1);
    }
    slots.clearIndex(emptied);
    expect([kept.size, emptied.size, slots.size, slots.bytes]).toEqual([300, 0, 300, 300]);
    for (const [key, slot] of kept) expect(`k${slots.values[slot]}`).toBe(key);
    store(slots, emptied, "again", 1);
    expect(emptied.size).toBe(1);
  });

  test("that are dropped make room for new ones, which begin empty", () => {
    const slots = open();
    const others = slots.openIndex();
    store(slots, others, "a", 1);
    for (let round = 0; round < 5; round++) {
      const index = slots.openIndex();
      expect(index.size).toBe(0);
      store(slots, index, "a", round);
      expect(slots.values[index.get("a") as number]).toBe(round);
      expect(index.id).toBe(1);
      slots.dropIndex(index);
    }
    expect([slots.size, others.size]).toEqual([1, 1]);
  });

  test("may be more than fit a small number", () => {
    const slots = open({ maxEntries: 70_000 });
    const indexes = Array.from({ length: 66_000 }, () => slots.openIndex());
    for (const at of [0, 1, 65_535, 65_536, 65_999]) store(slots, indexes[at] as SlotIndex, "a", at);
    for (const at of [0, 1, 65_535, 65_536, 65_999]) {
      const index = indexes[at] as SlotIndex;
      expect(slots.values[index.get("a") as number]).toBe(at);
      slots.remove(index, "a");
      expect(index.size).toBe(0);
    }
  });
});

describe("growth", () => {
  test("keeps every entry with all its fields", () => {
    const slots = open({ maxEntries: 5_000 });
    const indexes = [slots.openIndex(), slots.openIndex()];
    for (let at = 0; at < 5_000; at++) {
      const index = indexes[at % 2] as SlotIndex;
      slots.put(index, `k${at}`, at, LIVE, at * 1_000, NEVER, NEVER, at);
    }
    expect(slots.size).toBe(5_000);
    for (const index of indexes) {
      for (const [key, slot] of index) {
        const at = Number(key.slice(1));
        expect([slots.values[slot], slots.createdOf(slot), slots.expires[slot]]).toEqual([
          at,
          at * 1_000,
          NEVER,
        ]);
      }
    }
    for (const index of indexes) slots.clearIndex(index);
    expect([slots.size, slots.bytes]).toEqual([0, 0]);
  });

  test("begins small whatever the bound, and an emptied store returns to that", () => {
    const slots = open({ maxEntries: 10_000_000 });
    const index = slots.openIndex();
    const small = slots.expires.length;
    expect(small).toBeLessThan(1_000);
    for (let at = 0; at < 3_000; at++) store(slots, index, `k${at}`, at);
    expect(slots.expires.length).toBeLessThanOrEqual(6_000);
    slots.clearIndex(index);
    expect(slots.expires.length).toBe(small);
    store(slots, index, "again", 1);
    expect(slots.values[index.get("again") as number]).toBe(1);
  });
});

describe("an entry larger than the store", () => {
  test("is refused, evicts nobody and leaves no older value behind", () => {
    const evicted: string[] = [];
    const slots = open({ maxBytes: 100, onEvict: (_, key) => evicted.push(key) });
    const index = slots.openIndex();
    store(slots, index, "a", 1, 40);
    store(slots, index, "b", 1, 40);
    expect(store(slots, index, "c", 1, 101)).toBe(-1);
    expect(store(slots, index, "a", 2, 101)).toBe(-1);
    expect([...index.keys()]).toEqual(["b"]);
    expect([evicted, slots.bytes]).toEqual([[], 40]);
    expect(store(slots, index, "c", 1, 100)).toBeGreaterThanOrEqual(0);
    expect(evicted).toEqual(["b"]);
  });
});

describe("onEvict", () => {
  test("hears of entries that made room, not of removed, expired or dead ones", async () => {
    const evicted: string[] = [];
    const slots = open({ maxEntries: 2, onEvict: (_, key) => evicted.push(key) });
    const index = slots.openIndex();
    const seal = new MortalSeal();
    slots.put(index, "dead", 1, seal, 0, NEVER);
    slots.put(index, "expired", 1, LIVE, 0, clock.now() + 1_000);
    seal.live = false;
    await clock.advance(1_000);
    store(slots, index, "a", 1);
    store(slots, index, "b", 1);
    slots.remove(index, "a");
    store(slots, index, "c", 1);
    expect(evicted).toEqual([]);
    store(slots, index, "d", 1);
    expect(evicted).toHaveLength(1);
    expect(index.has(evicted[0] as string)).toBe(false);
  });

  test("may write to the store itself", () => {
    const slots: Slots<SlotSeal> = open({
      maxEntries: 3,
      onEvict: (index, key) => {
        if (!key.startsWith("again")) store(slots, index, `again ${key}`, key);
      },
    });
    const index = slots.openIndex();
    for (let at = 0; at < 20; at++) store(slots, index, `k${at}`, at);
    expect([slots.size, index.size]).toEqual([3, 3]);
    for (const [key, slot] of index) expect(key.endsWith(String(slots.values[slot]))).toBe(true);
  });
});

describe("an iteration over an index", () => {
  test("meets every entry that is there from its beginning to its end, whatever else changes", () => {
    const slots = open({ maxEntries: 5_000 });
    const index = slots.openIndex();
    for (let at = 0; at < 600; at++) store(slots, index, `k${at}`, at);
    for (let at = 0; at < 200; at++) slots.remove(index, `k${at}`);
    const stayed = new Set(index.keys());
    const met = new Set<string>();
    let turn = 0;
    for (const key of index.keys()) {
      met.add(key);
      const victim = `k${200 + ((turn * 5) % 133) * 3}`;
      slots.remove(index, victim);
      stayed.delete(victim);
      store(slots, index, `k${turn % 200}`, "back");
      store(slots, index, `new ${turn++}`, 0);
      store(slots, index, key, "rewritten");
    }
    expect(stayed.size).toBe(267);
    for (const key of stayed) expect(met).toContain(key);
    expect(index.size).toBe([...index].length);
  });

  test("ends although every turn adds an entry", () => {
    const slots = open({ maxEntries: 5_000 });
    const index = slots.openIndex();
    for (let at = 0; at < 100; at++) store(slots, index, `k${at}`, at);
    let turns = 0;
    for (const _ of index) store(slots, index, `new ${turns++}`, 0);
    expect(turns).toBe(100);
  });

  test("does not meet keys that were removed, nor count them", () => {
    const slots = open();
    const index = slots.openIndex();
    for (const key of ["a", "b", "c"]) store(slots, index, key, key);
    slots.remove(index, "b");
    expect([...index.keys()]).toEqual(["a", "c"]);
    expect([index.size, index.has("b"), index.get("b")]).toEqual([2, false, undefined]);
    store(slots, index, "b", "back");
    expect([index.size, [...index.keys()].toSorted()]).toEqual([3, ["a", "b", "c"]]);
    for (const key of ["a", "b", "c"]) slots.remove(index, key);
    expect([index.size, [...index.keys()]]).toEqual([0, []]);
  });
});

test("a key that is set and deleted over and over leaves few deleted entries in the Map, which each miss would walk", () => {
  const slots = open({ maxEntries: 20_000 });
  const index = slots.openIndex();
  for (let at = 0; at < 10_000; at++) store(slots, index, `k${at}`, at);
  const deleted = vi.spyOn(Map.prototype, "delete");
  for (let at = 0; at < 10_000; at++) {
    store(slots, index, "a", at);
    slots.remove(index, "a");
    store(slots, index, "b", at);
    slots.remove(index, "b");
  }
  const deletions = deleted.mock.calls.length;
  vi.restoreAllMocks();
  expect(deletions).toBeLessThan(200);
  expect(index.size).toBe(10_000);
});

test("keys that were removed for good do not stay", () => {
  const slots = open({ maxEntries: 20_000 });
  const index = slots.openIndex();
  store(slots, index, "stays", 1);
  const deleted = vi.spyOn(Map.prototype, "delete");
  for (let at = 0; at < 5_000; at++) {
    store(slots, index, `k${at}`, at);
    slots.remove(index, `k${at}`);
  }
  const deletions = deleted.mock.calls.length;
  vi.restoreAllMocks();
  expect(deletions).toBeGreaterThan(4_800);
});
