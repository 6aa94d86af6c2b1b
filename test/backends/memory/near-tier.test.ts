// What the near tier keeps: everything while there is room; then keys that return, so that a scan does not displace them.
import { beforeEach, describe, expect, it, test } from "vitest";
import { TRACES } from "../../../bench/hit-ratio/traces.mjs";
import { MemoryNearTier } from "../../../src/backends/memory/near-tier.ts";
import type { NearPage } from "../../../src/core/near/pushed-near.ts";
import { ManualClock } from "../../../src/testing/index.ts";

const NEVER = Number.POSITIVE_INFINITY;
const ROOM = 100;

function pageOf(maxEntries: number, maxBytes = NEVER): NearPage {
  return new MemoryNearTier({ maxEntries, maxBytes, values: "shared" }, new ManualClock()).page();
}

/** As a read of the store does: kept unless declined. Returns whether it is kept. */
const offer = (page: NearPage, key: string, bytes = 10): boolean =>
  !page.declines(key) && page.keep(key, key, NEVER, undefined, bytes);

let page: NearPage;

beforeEach(() => {
  page = pageOf(ROOM);
});

/** Keys k0, k1 and so on, each read twice afterwards, and one more, for which one had to leave. */
function fill(): void {
  for (let at = 0; at < ROOM; at++) offer(page, `k${at}`);
  for (let at = 0; at < ROOM; at++) page.peek(`k${at}`);
  for (let at = 0; at < ROOM; at++) page.peek(`k${at}`);
  offer(page, "one too many");
}

test("everything is kept while there is room", () => {
  for (let at = 0; at < ROOM; at++) expect(offer(page, `k${at}`)).toBe(true);
});

describe("a full tier", () => {
  beforeEach(fill);

  it("declines a key that it sees for the first time, and keeps it when it returns", () => {
    expect(offer(page, "new")).toBe(false);
    expect(page.peek("new")).toBeUndefined();
    expect(offer(page, "new")).toBe(true);
    expect(page.peek("new")).toBe("new");
  });

  it("is left unchanged by a scan, however long", () => {
    const before = [...page.keys()];
    for (let at = 0; at < 50 * ROOM; at++) offer(page, `once ${at}`);
    const after = new Set(page.keys());
    // Now and then a new key is mistaken for one that was there before.
    expect(before.filter((key) => !after.has(key)).length).toBeLessThan(ROOM / 20);
  });

  it("accepts a new value of a key it holds", () => {
    const [held = ""] = page.keys();
    expect(page.declines(held)).toBe(false);
  });

  it("has room again after it was cleared or an entry was dropped", () => {
    const [held = ""] = page.keys();
    page.drop(held);
    expect(offer(page, "in its place")).toBe(true);
    for (const key of [...page.keys()]) page.drop(key);
    expect(offer(page, "the first again")).toBe(true);
    page.clear();
    for (let at = 0; at < ROOM; at++) expect(offer(page, `again ${at}`)).toBe(true);
  });

  it("keeps everything once keys turn out to return soon and then no more", () => {
    let hits = 0;
    for (let at = 0; at < 100 * ROOM; at++) {
      const key = `short-lived ${Math.floor(at / 4)}`;
      if (page.peek(key) !== undefined) hits++;
      else offer(page, key);
    }
    // Three of four reads of a key are repeats. If it were declined every time, one more would be lost: only half would remain.
    expect(hits / (100 * ROOM)).toBeGreaterThan(0.65);
  });
});

test("a tier that has reached its bytes is full", () => {
  page = pageOf(1_000_000, 100 * ROOM);
  let at = 0;
  while (offer(page, `k${at}`)) at++;
  expect(offer(page, `k${at}`)).toBe(true);
});

/** Hits of a tier that accepts everything, or may decline. */
function hitPercentage(trace: Uint32Array, mayDecline: boolean): number {
  const tier = pageOf(1_000);
  let hits = 0;
  for (const number of trace) {
    const key = `item:${number}`;
    if (tier.peek(key) !== undefined) hits++;
    else if (mayDecline) offer(tier, key);
    else tier.keep(key, key, NEVER, undefined, 10);
  }
  return (100 * hits) / trace.length;
}

test.each(TRACES.map(({ name, make }) => ({ name, make })))(
  "declining newcomers costs no hits: $name",
  ({ make }) => {
    const trace = make(100_000);
    expect(hitPercentage(trace, true)).toBeGreaterThan(hitPercentage(trace, false) - 0.5);
  },
);

test("an entry's dependency is notified of hits, not of checks by the sweep", async () => {
  const clock = new ManualClock();
  page = new MemoryNearTier({ maxEntries: ROOM, maxBytes: NEVER, values: "shared" }, clock).page();
  let [checks, uses] = [0, 0];
  const isLive = (): boolean => ++checks > 0;
  page.keep("k", 1, clock.now() + 3_600_000, { isLive, used: () => void uses++ }, 10);
  await clock.advance(600_000);
  expect(checks).toBeGreaterThan(0);
  expect(uses).toBe(0);
  expect(page.peek("k")).toBe(1);
  expect(uses).toBe(1);
});
