// When a topology that covers fewer than all slots is accepted, and for how long.
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

/** The number of slots required of a lookup that finds `slots`. */
function lookup(slots: number, hasHeardAll = false): number {
  const required = enough.required();
  enough.found(slots, hasHeardAll);
  return required;
}

describe("when some servers could not be asked", () => {
  test("the slots known to the others are enough for a limited time, which lookups do not extend", async () => {
    expect(lookup(12)).toBe(SLOTS);
    for (let second = 0; second < 15; second++) {
      expect(lookup(12)).toBe(12);
      await clock.advance(1_000);
    }
    expect(lookup(12)).toBe(SLOTS);
    expect(lookup(12)).toBe(12);
  });

  test("a lookup that outlasts that time does not start another", async () => {
    lookup(12);
    await clock.advance(14_999);
    expect(enough.required()).toBe(12);
    await clock.advance(1);
    enough.found(12, false);
    expect(enough.required()).toBe(SLOTS);
  });

  test("an answer with more slots raises the requirement, and one with all of them ends it", () => {
    lookup(12);
    lookup(20);
    expect(lookup(SLOTS)).toBe(20);
    expect(lookup(SLOTS)).toBe(SLOTS);
  });
});

test("a search for an unassigned slot asks all servers at once, but at most once a second", async () => {
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

test("fewer slots are accepted permanently if all servers agree", async () => {
  lookup(12, true);
  await clock.advance(60_000);
  enough.search();
  expect(lookup(12)).toBe(12);
});
