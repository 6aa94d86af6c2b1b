import { expect, test, vi } from "vitest";
import type { Page } from "../../../src/backends/memory/layout/page.ts";
import { Rows } from "../../../src/backends/memory/layout/rows.ts";
import { type EntryTags, Table } from "../../../src/backends/memory/table.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const NEVER = Number.POSITIVE_INFINITY;

function open(start?: number): { clock: ManualClock; table: Table<EntryTags>; page: Page } {
  const clock = new ManualClock(start);
  const table = new Table<EntryTags>({ maxEntries: 1_000, maxBytes: NEVER, clock });
  return { clock, table, page: table.openPage() };
}

test("a single entry is not returned after its expiry when the wheel is turned late", async () => {
  const { clock, table, page } = open();
  table.put(page, "a", 1, undefined, clock.now() + 7_200_000);
  await clock.jump(7_199_999);
  table.turn(10);
  await clock.jump(500);
  expect(page.peek("a")).toBeUndefined();
});

test("a single entry that was renewed is not returned after its expiry when the timer is seconds late", async () => {
  const { clock, table, page } = open();
  table.put(page, "a", 1, undefined, clock.now() + 500);
  table.put(page, "a", 2, undefined, clock.now() + 9_000);
  for (let hit = 0; hit < 16; hit++) page.peek("a");
  await clock.jump(8_000);
  table.turn(10);
  await clock.jump(1_500);
  expect(page.peek("a")).toBeUndefined();
});

test("a single stale entry is not returned as fresh when the wheel is turned late", async () => {
  const { clock, table, page } = open();
  table.put(page, "a", 1, undefined, clock.now() + 7_200_000, 86_400_000);
  await clock.jump(7_800_000);
  table.turn(10);
  expect(page.peek("a")).toBeUndefined();
});

test("a single entry that loses its box late is not returned after its expiry", async () => {
  const { clock, table, page } = open();
  table.put(page, "a", 1, undefined, NEVER);
  table.put(page, "a", 2, undefined, clock.now() + 60_000);
  await clock.jump(59_500);
  for (let hit = 0; hit < 16; hit++) page.peek("a");
  await clock.jump(1_000);
  expect(page.peek("a")).toBeUndefined();
});

test("an entry rewritten with a shorter ttl, after it lost the box of a longer one, is stale when it expires", async () => {
  const { clock, table, page } = open();
  table.put(page, "a", 1, undefined, clock.now() + 3_000);
  table.put(page, "a", 2, undefined, clock.now() + 3_600_000);
  for (let hit = 0; hit < 16; hit++) page.peek("a");
  table.put(page, "a", 3, undefined, clock.now() + 60_000);
  expect(table.find(page, "a")?.staleUntil).toBe(clock.now() + 60_000);
  for (let second = 0; second < 63; second++) {
    await clock.advance(1_000);
    table.turn(10);
  }
  expect(table.size).toBe(0);
});

test("an entry rewritten to expire earlier in the same second is stale when it expires", () => {
  const { clock, table, page } = open();
  table.put(page, "a", 1, undefined, clock.now() + 900);
  table.put(page, "a", 2, undefined, clock.now() + 100);
  expect(table.find(page, "a")?.staleUntil).toBe(clock.now() + 100);
});

test("fractions of a millisecond create no stale time, and do not end the fast path for rewrites", () => {
  const { clock, table, page } = open(Date.UTC(2026, 0, 1) + 0.25);
  table.put(page, "a", 1, undefined, clock.now() + 60_000);
  table.put(page, "b", 1, undefined, clock.now() + 120_000);
  table.put(page, "a", 2, undefined, clock.now() + 60_000);
  for (let hit = 0; hit < 16; hit++) page.peek("a");
  const found = table.find(page, "a");
  table.put(page, "c", 1, undefined, clock.now() + 120_000);
  table.put(page, "b", 2, undefined, clock.now() + 120_000);
  const written = vi.spyOn(Rows.prototype, "writeTimes");
  for (let at = 0; at < 100; at++) expect(table.renew(page, "b", at, clock.now() + 120_000)).toBe(true);
  const rowsWritten = written.mock.calls.length;
  vi.restoreAllMocks();
  expect([found?.staleUntil, rowsWritten]).toEqual([found?.expires, 0]);
});
