import { describe, expect, test } from "vitest";
import { Rows } from "../../../../src/backends/memory/layout/rows.ts";

const NEVER = Number.POSITIVE_INFINITY;

function allocate<S>(rows: Rows<S>, key: string, hash = 0, owner = 0): number {
  rows.reserve();
  return rows.allocate(key, hash, owner);
}

describe("a row", () => {
  test("keeps what was written, to the last bit", () => {
    const rows = new Rows<string>(10);
    const slot = allocate(rows, "a", -2, 0x7fff_ffff);
    rows.writeSize(slot, 0xffff_ffff);
    rows.writeTimes(slot, 1_767_225_600_123.25, 1_767_225_600_999.5);
    rows.writeTagSet(slot, "seal");
    expect(rows.keys[slot]).toBe("a");
    expect([rows.hashOf(slot), rows.ownerOf(slot), rows.sizeOf(slot)]).toEqual([
      -2, 0x7fff_ffff, 0xffff_ffff,
    ]);
    expect([rows.expiresOf(slot), rows.staleUntilOf(slot)]).toEqual([
      1_767_225_600_123.25, 1_767_225_600_999.5,
    ]);
    expect(rows.tagSetOf(slot)).toBe("seal");
  });

  test("does not overlap its neighbours", () => {
    const rows = new Rows<string>(3);
    const slots = ["a", "b", "c"].map((key, at) => allocate(rows, key, at, at));
    const middle = slots[1] as number;
    for (const slot of slots) rows.writeTimes(slot, slot, slot);
    for (const slot of slots) rows.writeSize(slot, slot);
    rows.writeTimes(middle, -1.5, -1.5);
    rows.writeSize(middle, 0xffff_ffff);
    for (const at of [0, 2]) {
      const slot = slots[at] as number;
      expect([rows.hashOf(slot), rows.ownerOf(slot), rows.sizeOf(slot), rows.expiresOf(slot)]).toEqual([
        at,
        at,
        slot,
        slot,
      ]);
    }
  });

  test("without a seal or a stale time reports that, before and after others have them", () => {
    const rows = new Rows<string>(10);
    const plain = allocate(rows, "plain");
    rows.writeTimes(plain, 5_000, 5_000);
    rows.writeTagSet(plain, undefined);
    expect([rows.tagSets, rows.staleUntil]).toEqual([undefined, undefined]);
    expect([rows.tagSetOf(plain), rows.staleUntilOf(plain)]).toEqual([undefined, 5_000]);
    const other = allocate(rows, "other");
    rows.writeTimes(other, 6_000, 9_000);
    rows.writeTagSet(other, "seal");
    expect([rows.tagSetOf(plain), rows.staleUntilOf(plain)]).toEqual([undefined, 5_000]);
    expect([rows.tagSetOf(other), rows.staleUntilOf(other)]).toEqual(["seal", 9_000]);
    rows.writeTimes(other, 7_000, 7_000);
    rows.writeTagSet(other, undefined);
    expect([rows.tagSetOf(other), rows.staleUntilOf(other)]).toEqual([undefined, 7_000]);
  });

  test("that never expires is never stale", () => {
    const rows = new Rows(10);
    const slot = allocate(rows, "a");
    rows.writeTimes(slot, NEVER, NEVER);
    expect([rows.expiresOf(slot), rows.staleUntilOf(slot), rows.staleUntil]).toEqual([
      NEVER,
      NEVER,
      undefined,
    ]);
  });

  test("that is free retains nothing and is the next to be used", () => {
    const rows = new Rows<object>(10);
    const slots = ["a", "b", "c"].map((key) => allocate(rows, key));
    for (const slot of slots) rows.writeTagSet(slot, {});
    rows.release(slots[0] as number);
    rows.release(slots[2] as number);
    expect(slots.map((slot) => rows.isOccupied(slot))).toEqual([false, true, false]);
    expect(slots.map((slot) => [rows.keys[slot], rows.tagSetOf(slot) === undefined])).toEqual([
      [undefined, true],
      ["b", false],
      [undefined, true],
    ]);
    expect([allocate(rows, "d"), allocate(rows, "e")]).toEqual([slots[2], slots[0]]);
    expect(allocate(rows, "f")).toBe(3);
    expect(rows.used).toBe(4);
  });
});

describe("rows", () => {
  test("start small whatever the bound, and double as needed", () => {
    const rows = new Rows(10_000_000);
    expect(rows.capacity).toBe(256);
    const grown: number[] = [];
    for (let at = 0; at < 1_025; at++) {
      if (rows.reserve()) grown.push(rows.capacity);
      rows.allocate(`k${at}`, at, at);
    }
    expect(grown).toEqual([512, 1_024, 2_048]);
  });

  test("never exceed the bound", () => {
    const few = new Rows(3);
    expect(few.capacity).toBe(3);
    const some = new Rows(300);
    for (let at = 0; at < 300; at++) allocate(some, `k${at}`);
    expect(some.capacity).toBe(300);
  });

  test("do not grow while one is free", () => {
    const rows = new Rows(1_000);
    for (let at = 0; at < 256; at++) allocate(rows, `k${at}`);
    rows.release(100);
    expect(rows.reserve()).toBe(false);
    expect(rows.allocate("again", 0, 0)).toBe(100);
    expect(rows.reserve()).toBe(true);
  });

  test("keep everything when they grow", () => {
    const rows = new Rows<number>(5_000);
    for (let at = 0; at < 5_000; at++) {
      const slot = allocate(rows, `k${at}`, -at, at);
      rows.writeSize(slot, at * 2);
      rows.writeTimes(slot, at * 3, at * 4);
      rows.writeTagSet(slot, at);
    }
    const wrong: number[] = [];
    for (let slot = 0; slot < 5_000; slot++) {
      const kept =
        rows.keys[slot] === `k${slot}` &&
        rows.tagSetOf(slot) === slot &&
        rows.hashOf(slot) === 0 - slot &&
        rows.ownerOf(slot) === slot &&
        rows.sizeOf(slot) === slot * 2 &&
        rows.expiresOf(slot) === slot * 3 &&
        rows.staleUntilOf(slot) === slot * 4;
      if (!kept) wrong.push(slot);
    }
    expect(wrong).toEqual([]);
  });

  test("that are all free shrink to their initial size", () => {
    const rows = new Rows<number>(5_000);
    for (let at = 0; at < 1_000; at++) {
      const slot = allocate(rows, `k${at}`);
      rows.writeTimes(slot, 1, 2);
      rows.writeTagSet(slot, at);
    }
    for (let slot = 0; slot < 1_000; slot++) rows.release(slot);
    rows.reset();
    expect([rows.capacity, rows.used, rows.keys.length]).toEqual([256, 0, 256]);
    expect([rows.tagSets, rows.staleUntil]).toEqual([undefined, undefined]);
    const slot = allocate(rows, "again", 7, 8);
    rows.writeTimes(slot, 5, 5);
    expect([slot, rows.staleUntilOf(slot), rows.tagSetOf(slot), rows.used]).toEqual([0, 5, undefined, 1]);
  });

  test("that were few start at the first again", () => {
    const rows = new Rows(5_000);
    for (let at = 0; at < 10; at++) allocate(rows, `k${at}`);
    for (let slot = 0; slot < 10; slot++) rows.release(slot);
    rows.reset();
    expect([allocate(rows, "a"), allocate(rows, "b"), rows.used]).toEqual([0, 1, 2]);
    expect(rows.isOccupied(2)).toBe(false);
  });
});
