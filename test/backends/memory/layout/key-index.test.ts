import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KeyIndex } from "../../../../src/backends/memory/layout/key-index.ts";
import { Rows } from "../../../../src/backends/memory/layout/rows.ts";

/** An index and its rows, changed together as a table does. */
class Indexed {
  readonly rows: Rows<unknown>;
  readonly index: KeyIndex;

  constructor(mostSlots: number) {
    this.rows = new Rows(mostSlots);
    this.index = new KeyIndex(this.rows);
    this.index.fit();
  }

  add(key: string, owner: number, hash: number): number {
    if (this.rows.reserve()) this.index.fit();
    const slot = this.rows.allocate(key, hash, owner);
    this.index.add(slot);
    return slot;
  }

  remove(slot: number): void {
    this.index.remove(slot);
    this.rows.release(slot);
  }
}

describe("an index", () => {
  test("finds the slot of each key and nothing for an unknown hash", () => {
    const entries = new Indexed(100);
    expect(entries.index.find("a", 0, 1)).toBe(-1);
    const hashes = [0, 1, -1, 0x7fff_ffff, -0x8000_0000];
    const slots = hashes.map((hash) => entries.add(`${hash}`, 0, hash));
    expect(hashes.map((hash) => entries.index.find(`${hash}`, 0, hash))).toEqual(slots);
    for (const hash of [2, -2, 0x7fff_fffe, -0x7fff_ffff]) {
      expect(entries.index.find("other", 0, hash)).toBe(-1);
    }
  });

  test("guesses the slot of a hash by its high bits", () => {
    const entries = new Indexed(100);
    const hashes = [0x1234_5678, -1, 0x0100_0007, 0x0200_0007];
    const slots = hashes.map((hash) => entries.add(`${hash}`, 0, hash));
    expect(hashes.map((hash) => entries.index.guess(hash))).toEqual(slots);
    expect(entries.index.guess(0x0300_0007)).toBe(-1);
    entries.remove(slots[2] as number);
    expect(entries.index.guess(0x0100_0007)).toBe(-1);
    expect(entries.index.guess(0x0200_0007)).toBe(slots[3]);
  });

  test("distinguishes hashes that start at the same place, with the same or other high bits", () => {
    const entries = new Indexed(6);
    // There are eight places for six slots: all of these start at the last one.
    const hashes = [0x0000_0007, 0x0000_000f, 0x0100_0007, 0x0000_0017, 0x0100_000f, -0x0000_0001];
    const slots = hashes.map((hash) => entries.add(`${hash}`, 0, hash));
    for (const [at, hash] of hashes.entries()) expect(entries.index.find(`${hash}`, 0, hash)).toBe(slots[at]);
    expect(entries.index.find("other", 0, 0x0000_001f)).toBe(-1);
  });

  test("finds a key of its owner, not the same key of another with the same hash", () => {
    const entries = new Indexed(100);
    const slots = [0, 1, 2].map((owner) => entries.add("a", owner, 77));
    for (const owner of [0, 1, 2]) expect(entries.index.find("a", owner, 77)).toBe(slots[owner]);
    expect(entries.index.find("a", 3, 77)).toBe(-1);
    entries.remove(slots[1] as number);
    expect([0, 1, 2].map((owner) => entries.index.find("a", owner, 77))).toEqual([slots[0], -1, slots[2]]);
  });

  test("distinguishes keys of one owner with the very same hash, even after one of them left", () => {
    const entries = new Indexed(100);
    const slots = ["a", "b", "c"].map((key) => entries.add(key, 5, -77));
    const find = (key: string): number => entries.index.find(key, 5, -77);
    expect(["a", "b", "c", "d"].map(find)).toEqual([...slots, -1]);
    entries.remove(slots[0] as number);
    expect(["a", "b", "c"].map(find)).toEqual([-1, slots[1], slots[2]]);
    entries.remove(slots[2] as number);
    expect(["a", "b", "c"].map(find)).toEqual([-1, slots[1], -1]);
    const again = entries.add("a", 5, -77);
    expect(["a", "b", "c"].map(find)).toEqual([again, slots[1], -1]);
  });

  test("does not mistake a new entry in a reused slot for one that shares its hash", () => {
    const entries = new Indexed(100);
    entries.add("a", 0, 9);
    const slot = entries.add("b", 0, 9);
    entries.remove(slot);
    expect(entries.add("c", 0, 10)).toBe(slot);
    expect(entries.index.find("c", 0, 10)).toBe(slot);
    expect(entries.rows.ownerOf(slot)).toBe(0);
  });

  test("moves back those that a leaving slot had displaced, across the end of the table", () => {
    const entries = new Indexed(6);
    // Places 6, 7, 0, 1, 2: the last two belong in 0 and 7.
    const hashes = [6, 0x0100_0006, 0x0200_0006, 0x0100_0000, 0x0300_0007];
    const slots = hashes.map((hash) => entries.add(`${hash}`, 0, hash));
    for (const leaving of [1, 0, 2]) {
      entries.remove(slots[leaving] as number);
      hashes[leaving] = Number.NaN;
      for (const [at, hash] of hashes.entries()) {
        if (!Number.isNaN(hash)) expect(entries.index.find(`${hash}`, 0, hash)).toBe(slots[at]);
      }
    }
  });

  test("keeps everything when the rows grow, including equal hashes", () => {
    const entries = new Indexed(5_000);
    const hashOf = (at: number): number => Math.imul(at % 4_000, 0x9e37_79b1) | 0;
    for (let at = 0; at < 5_000; at++) entries.add(`k${at}`, at % 3, hashOf(at));
    const lost: number[] = [];
    for (let at = 0; at < 5_000; at++) {
      if (entries.index.find(`k${at}`, at % 3, hashOf(at)) !== at) lost.push(at);
    }
    expect([entries.rows.capacity, lost]).toEqual([5_000, []]);
  });

  test("starts small again with its rows", () => {
    const entries = new Indexed(5_000);
    for (let at = 0; at < 1_000; at++) entries.add(`k${at}`, 0, at);
    for (let slot = 0; slot < 1_000; slot++) entries.remove(slot);
    entries.rows.reset();
    entries.index.fit();
    expect(entries.index.find("k7", 0, 7)).toBe(-1);
    for (let at = 0; at < 1_000; at++) entries.add(`k${at}`, 0, at);
    for (let at = 0; at < 1_000; at++) expect(entries.index.find(`k${at}`, 0, at)).toBe(at);
  });

  test("works with one slot", () => {
    const entries = new Indexed(1);
    for (const hash of [0, 1, -1]) {
      const slot = entries.add("a", 0, hash);
      expect([entries.index.find("a", 0, hash), entries.index.find("b", 0, hash ^ 2)]).toEqual([slot, -1]);
      entries.remove(slot);
      expect(entries.index.find("a", 0, hash)).toBe(-1);
    }
  });
});

test("an index agrees with a Map after every operation, however its hashes collide", () => {
  // A few hashes for many keys: they share places, high bits or all bits, and lie around the end of the table.
  const low = fc.constantFrom(0, 1, 2, 5, 6, 7, 254, 255, 509, 510, 511, 1_023, 2_047);
  const hashes = fc.array(
    fc.tuple(fc.constantFrom(0, 1, 0x7f, 0xff), low).map(([high, place]) => (high << 24) | place),
    { minLength: 1, maxLength: 60, size: "max" },
  );
  const steps = fc.array(fc.record({ owner: fc.nat(2), key: fc.nat(119), remove: fc.boolean() }), {
    maxLength: 300,
    size: "max",
  });
  const sizes = fc.constantFrom(1, 2, 3, 6, 12, 48, 100);
  fc.assert(
    fc.property(sizes, hashes, steps, (mostSlots, pool, todo) => {
      const entries = new Indexed(mostSlots);
      const model = new Map<string, { key: string; owner: number; hash: number; slot: number }>();
      for (const step of todo) {
        const key = `k${step.key}`;
        const name = `${step.owner} ${key}`;
        const hash = pool[step.key % pool.length] as number;
        const present = model.get(name);
        if (present !== undefined && step.remove) {
          entries.remove(present.slot);
          model.delete(name);
          expect(entries.rows.isOccupied(present.slot)).toBe(false);
        } else if (present === undefined && !step.remove && model.size < mostSlots) {
          const slot = entries.add(key, step.owner, hash);
          model.set(name, { key, owner: step.owner, hash, slot });
        }
        for (const entry of model.values()) {
          if (entries.index.find(entry.key, entry.owner, entry.hash) !== entry.slot)
            expect(entry).toBe("found");
        }
        if (model.has(name)) continue;
        // An absent key is not found, or mistaken for another one of the same owner and hash.
        const other = entries.index.find(key, step.owner, hash);
        if (other === -1) continue;
        expect([entries.rows.hashOf(other), entries.rows.ownerOf(other)]).toEqual([hash, step.owner]);
      }
      for (const entry of model.values()) entries.remove(entry.slot);
      for (const hash of pool) expect(entries.index.find("k0", 0, hash)).toBe(-1);
    }),
    { numRuns: 80 },
  );
});

test("an index of random hashes agrees with a Map while it grows and is emptied", () => {
  fc.assert(
    fc.property(fc.array(fc.integer(), { minLength: 300, maxLength: 1_500, size: "max" }), (hashes) => {
      const entries = new Indexed(2_000);
      const slots = hashes.map((hash, at) => entries.add(`k${at}`, at % 5, hash));
      const findAll = (): number[] => hashes.map((hash, at) => entries.index.find(`k${at}`, at % 5, hash));
      expect(findAll()).toEqual(slots);
      for (const [at, slot] of slots.entries()) if (at % 3 !== 0) entries.remove(slot);
      for (const [at, hash] of hashes.entries()) {
        if (at % 3 === 0) expect(entries.index.find(`k${at}`, at % 5, hash)).toBe(slots[at]);
      }
    }),
    { numRuns: 10 },
  );
});
