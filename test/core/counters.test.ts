import { describe, expect, test } from "vitest";
import { LocalCounters, sumOf } from "../../src/core/counters.ts";
import type { Namespace } from "../../src/core/namespace.ts";
import { ManualClock } from "../../src/testing/index.ts";
import { ReferenceStore } from "../support/reference-backend.ts";
import { openSharedStore } from "../support/shared-store.ts";

function openSpaces(count: number): {
  clock: ManualClock;
  store: ReferenceStore;
  spaces: readonly Namespace[];
} {
  const clock = new ManualClock();
  const store = new ReferenceStore(clock);
  const spaces = Array.from({ length: count }, () => openSharedStore(store.client(), clock).namespace("p"));
  return { clock, store, spaces };
}

test("rows are added number by number, whichever is longer", () => {
  expect(sumOf([1, 2], [10, 20, 30])).toEqual([11, 22, 30]);
  expect(sumOf([1, 2, 3], [])).toEqual([1, 2, 3]);
  expect(sumOf([], [])).toEqual([]);
});

describe("counters in a shared store", () => {
  test("lose nothing when many add at once", async () => {
    const { spaces } = openSpaces(5);
    await Promise.all(spaces.map(({ counters }, at) => counters.add("row", [1, at], 60_000)));
    expect(await spaces[0]!.counters.read(["row", "absent"])).toEqual([[5, 10], undefined]);
  });

  test("keep a row for the duration of the latest add", async () => {
    const { clock, spaces } = openSpaces(1);
    const { counters } = spaces[0]!;
    await counters.add("row", [1], 1_000);
    await clock.advance(600);
    await counters.add("row", [1], 1_000);
    await clock.advance(999);
    expect(await counters.read(["row"])).toEqual([[2]]);
    await clock.advance(1);
    expect(await counters.read(["row"])).toEqual([undefined]);
    expect(counters.now()).toBe(clock.now());
  });

  test("reject when others always win the race, so that nothing is assumed to be counted", async () => {
    const clock = new ManualClock();
    const client = new ReferenceStore(clock).client();
    client.swap = async (key) => ({ won: false, current: await client.read(key) });
    const { counters } = openSharedStore(client, clock).namespace("p");
    await expect(counters.add("row", [1], 60_000)).rejects.toThrow("times while it was being updated");
    expect(await counters.read(["row"])).toEqual([undefined]);
  });

  test("replace a damaged row, and read nothing out of it", async () => {
    const { clock, store, spaces } = openSpaces(1);
    const { counters } = spaces[0]!;
    await counters.add("row", [1], 60_000);
    const [key] = store.keys().filter((one) => one.includes("row"));
    store.put(key!, { frame: Uint8Array.of(1, 2, 3), expires: clock.now() + 60_000 });
    await counters.add("row", [7], 60_000);
    expect(await counters.read(["row"])).toEqual([[7]]);
  });
});

test("counters without a shared store do the same within one process", async () => {
  const clock = new ManualClock();
  const counters = new LocalCounters(clock);
  counters.add("a", [1], 1_000);
  counters.add("b", [1], 2_000);
  counters.add("a", [2], 1_000);
  expect([counters.read(["a", "b", "c"]), counters.now()]).toEqual([[[3], [1], undefined], clock.now()]);
  await clock.advance(1_000);
  expect(counters.read(["a", "b"])).toEqual([undefined, [1]]);
  await clock.advance(1_000);
  counters.add("d", [1], 1_000);
  expect(counters.read(["a", "b", "d"])).toEqual([undefined, undefined, [1]]);
});
