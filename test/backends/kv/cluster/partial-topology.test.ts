// When fewer slots than all are enough, and for how long.
import { beforeEach, describe, expect, test } from "vitest";
import { PartialTopology } from "../../../../src/backends/kv/cluster/partial-topology.ts";
import { SLOTS } from "../../../../src/backends/kv/cluster/slots.ts";
import { ManualClock } from "../../../../src/testing/index.ts";

let clock: ManualClock;
let enough: PartialTopology;

beforeEach(() => {
  clock = new ManualClock();
  enough = new PartialTopology(clock);
});

/** What a lookup wants that finds so many. */
function lookup(slots: number, hasHeardAll = false): number {
  const required = enough.required();
  enough.found(slots, hasHeardAll);
  return required;
}

describe("where somebody could not be asked", () => {
  test("what the others know is enough for a while, which lookups do not make longer", async () => {
    expect(lookup(12)).toBe(SLOTS);
    for (let second = 0; second < 15; second++) {
      expect(lookup(12)).toBe(12);
      await clock.advance(1_000);
    }
    expect(lookup(12)).toBe(SLOTS);
    expect(lookup(12)).toBe(12);
  });

  test("a lookup that outlasts the while does not begin another", async () => {
    lookup(12);
    await clock.advance(14_999);
    expect(enough.required()).toBe(12);
    await clock.advance(1);
    enough.found(12, false);
    expect(enough.required()).toBe(SLOTS);
  });

  test("whoever tells of more raises it, and who tells of all ends it", () => {
    lookup(12);
    lookup(20);
    expect(lookup(SLOTS)).toBe(20);
    expect(lookup(SLOTS)).toBe(SLOTS);
  });
});

test("a search for a slot that is nobody's has all asked at once, but not twice in a second", async () => {
  lookup(12);
  enough.search();
  expect(lookup(12)).toBe(SLOTS);
  enough.search();
  expect(lookup(12)).toBe(12);
  await clock.advance(1_000);
  expect(lookup(12)).toBe(SLOTS);
  await clock.advance(1_000);
  expect(lookup(12)).toBe(12);
});

test("fewer are enough for good where all agree", async () => {
  lookup(12, true);
  await clock.advance(60_000);
  enough.search();
  expect(lookup(12)).toBe(12);
});
