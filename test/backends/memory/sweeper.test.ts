import { describe, expect, test } from "vitest";
import type { Page } from "../../../src/backends/memory/layout/page.ts";
import { Sweeper } from "../../../src/backends/memory/sweeper.ts";
import { type EntryTags, Table } from "../../../src/backends/memory/table.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LIVE, MortalTagSet } from "./tag-set-sample.ts";

const NEVER = Number.POSITIVE_INFINITY;

function open(clock: ManualClock): { table: Table<EntryTags>; page: Page } {
  const table = new Table<EntryTags>({ maxEntries: 100_000, maxBytes: NEVER, clock });
  return { table, page: table.openPage() };
}

describe("sweep", () => {
  test("reclaims everything that has expired within as many calls as the budget divides the slots", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    for (let at = 0; at < 1_000; at++) {
      table.put(page, `k${at}`, at, LIVE, at % 3 === 0 ? NEVER : clock.now() + 1_000);
    }
    expect(table.sweep(1_000)).toBe(0);
    await clock.advance(1_000);
    let reclaimed = 0;
    for (let call = 0; call < Math.ceil(1_000 / 64); call++) reclaimed += table.sweep(64);
    expect(reclaimed).toBe(666);
    expect([...page.keys()].every((key) => Number(key.slice(1)) % 3 === 0)).toBe(true);
  });

  test("examines no more slots than requested", () => {
    const { table, page } = open(new ManualClock());
    const tagSet = new MortalTagSet();
    for (let at = 0; at < 500; at++) table.put(page, `k${at}`, at, tagSet, NEVER);
    tagSet.asked = 0;
    table.sweep(50);
    expect(tagSet.asked).toBe(50);
  });

  test("keeps an expired entry while its stale value can still be used", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    table.put(page, "plain", 1, undefined, clock.now() + 1_000);
    table.put(page, "stale", 1, undefined, clock.now() + 1_000, 4_000);
    await clock.advance(4_999);
    table.sweep(10);
    expect([...page.keys()]).toEqual(["stale"]);
    await clock.advance(1);
    expect(table.sweep(10)).toBe(1);
    expect(table.size).toBe(0);
  });

  test("reclaims entries whose seal is dead, in every page", () => {
    const { table, page } = open(new ManualClock());
    const other = table.openPage();
    const tagSet = new MortalTagSet();
    for (let at = 0; at < 100; at++) {
      table.put(at % 2 === 0 ? page : other, `dead ${at}`, at, tagSet, NEVER);
      table.put(at % 2 === 0 ? page : other, `live ${at}`, at, at % 3 === 0 ? LIVE : undefined, NEVER);
    }
    tagSet.live = false;
    expect(table.sweep(200)).toBe(100);
    expect([page.size, other.size]).toEqual([50, 50]);
    expect([...page.keys(), ...other.keys()].every((key) => key.startsWith("live"))).toBe(true);
  });

  test("has no slots to examine while nothing has a seal", () => {
    const { table, page } = open(new ManualClock());
    for (let at = 0; at < 10; at++) table.put(page, `k${at}`, at, undefined, NEVER);
    expect(table.sweepLength).toBe(0);
    table.put(page, "sealed", 1, LIVE, NEVER);
    expect(table.sweepLength).toBe(11);
  });

  test("runs a little with every insertion, so that a busy table stays free of dead entries by itself", () => {
    const { table, page } = open(new ManualClock());
    const tagSet = new MortalTagSet();
    for (let at = 0; at < 1_000; at++) table.put(page, `old ${at}`, at, tagSet, NEVER);
    tagSet.live = false;
    for (let at = 0; at < 600; at++) table.put(page, `new ${at}`, at, undefined, NEVER);
    expect(table.size).toBe(600);
  });
});

describe("a turn", () => {
  test("reclaims what has expired, in slices, and reports when it is done", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    for (let at = 0; at < 1_000; at++) {
      table.put(page, `k${at}`, at, undefined, at % 4 === 0 ? NEVER : clock.now() + 1_000 + at);
    }
    expect(table.turn(1_000)).toBe(true);
    await clock.advance(3_000);
    for (const left of [700, 400]) {
      expect(table.turn(300)).toBe(false);
      expect(table.size).toBe(left);
    }
    expect(table.turn(300)).toBe(true);
    expect([...page.keys()].every((key) => Number(key.slice(1)) % 4 === 0)).toBe(true);
    expect(table.size).toBe(250);
  });

  test("keeps an expired entry while its stale value can still be used", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    table.put(page, "stale", 1, undefined, clock.now() + 1_000, 60_000);
    await clock.advance(60_999);
    table.turn(10);
    expect(page.size).toBe(1);
    await clock.advance(1_001);
    table.turn(10);
    expect(table.size).toBe(0);
  });

  test("reclaims the contents of a cleared page, a limited number at a time", () => {
    const { table, page } = open(new ManualClock());
    const other = table.openPage();
    for (let at = 0; at < 100; at++) table.put(page, `k${at}`, at, undefined, NEVER);
    table.put(other, "k0", 1, undefined, NEVER);
    table.clear(page);
    expect([table.needsTending, table.turn(60), table.size]).toEqual([true, false, 41]);
    expect([table.turn(60), table.size, table.needsTending]).toEqual([true, 1, false]);
    expect(other.peek("k0")).toBe(1);
  });

  test("runs a little with every insertion, so that a busy table needs no timer to stay clean", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    for (let at = 0; at < 1_000; at++) table.put(page, `old ${at}`, at, undefined, clock.now() + 1_000);
    await clock.advance(2_000);
    for (let at = 0; at < 600; at++) table.put(page, `new ${at}`, at, undefined, NEVER);
    expect(table.size).toBe(600);
    table.clear(page);
    for (let at = 0; at < 600; at++) table.put(page, `newer ${at}`, at, undefined, NEVER);
    expect(table.size).toBe(600);
  });
});

describe("the sweeper", () => {
  test("has a timer only while there is something to do", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    table.put(page, "never", 1, undefined, NEVER);
    expect(clock.pending).toBe(0);
    table.put(page, "a", 1, undefined, clock.now() + 1_000);
    table.put(page, "b", 1, undefined, clock.now() + 1_000);
    expect(clock.pending).toBe(1);
    await clock.advance(60_000);
    expect([table.size, clock.pending]).toEqual([1, 0]);
    table.put(page, "c", 1, undefined, clock.now() + 100_000);
    expect(clock.pending).toBe(1);
    table.remove(page, "c");
    await clock.advance(60_000);
    expect(clock.pending).toBe(0);
    table.put(page, "d", 1, LIVE, NEVER);
    expect(clock.pending).toBe(1);
    sweeper.stop();
  });

  test("has a timer while a cleared page has to be reclaimed", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    table.clear(page);
    expect(clock.pending).toBe(0);
    const other = table.openPage();
    for (let at = 0; at < 20_000; at++) {
      table.put(at % 2 === 0 ? page : other, `k${at}`, at, undefined, NEVER);
    }
    table.clear(page);
    expect([clock.pending, table.size]).toEqual([1, 20_000]);
    await clock.advance(1_000);
    expect([clock.pending, table.size]).toEqual([0, 10_000]);
  });

  test("finds the entries that were there before it started", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    table.put(page, "a", 1, undefined, clock.now() + 1_000);
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    await clock.advance(60_000);
    expect(table.size).toBe(0);
  });

  test("leaves no timer once stopped, and can be started again", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    table.put(page, "a", 1, undefined, clock.now() + 1_000);
    sweeper.stop();
    expect(clock.pending).toBe(0);
    table.remove(page, "a");
    table.put(page, "b", 1, undefined, clock.now() + 1_000);
    expect(clock.pending).toBe(0);
    sweeper.start();
    await clock.advance(60_000);
    expect(table.size).toBe(0);
    sweeper.stop();
    sweeper.stop();
  });

  test("reclaims what has expired within three seconds, whatever its ttl", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    for (const ttlMs of [1, 999, 1_000, 5_999, 6_001, 60_000, 4_096_000, 5_000_000, 9_000_000]) {
      table.put(page, "k", 1, undefined, clock.now() + ttlMs);
      await clock.advance(ttlMs - 1);
      expect(table.size).toBe(1);
      await clock.advance(3_001);
      expect([ttlMs, table.size]).toEqual([ttlMs, 0]);
    }
  });

  test("reclaims many entries that expire at once in slices, without waiting in between", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    for (let at = 0; at < 50_000; at++) table.put(page, `k${at}`, at, undefined, clock.now() + 30_000);
    await clock.advance(30_000);
    const sizes: number[] = [];
    const turn = table.turn.bind(table);
    table.turn = (most) => {
      const done = turn(most);
      sizes.push(table.size);
      return done;
    };
    await clock.advance(3_000);
    expect(table.size).toBe(0);
    for (const [at, size] of sizes.entries())
      expect((sizes[at - 1] ?? 50_000) - size).toBeLessThanOrEqual(10_000);
  });

  test("covers a large table within half a minute, in slices", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    const tagSet = new MortalTagSet();
    for (let at = 0; at < 50_000; at++) table.put(page, `k${at}`, at, tagSet, NEVER);
    sweeper.start();
    tagSet.asked = 0;
    let most = 0;
    let total = 0;
    for (let tenth = 0; tenth < 300; tenth++) {
      tagSet.asked = 0;
      await clock.advance(100);
      most = Math.max(most, tagSet.asked);
      total += tagSet.asked;
    }
    expect(total).toBeGreaterThanOrEqual(50_000);
    expect(most).toBeLessThanOrEqual(10_000);
    sweeper.stop();
  });

  test("speeds up while much has died", async () => {
    const clock = new ManualClock();
    const { table, page } = open(clock);
    const sweeper = new Sweeper(table, clock);
    const tagSet = new MortalTagSet();
    for (let at = 0; at < 50_000; at++) table.put(page, `k${at}`, at, tagSet, NEVER);
    tagSet.live = false;
    sweeper.start();
    await clock.advance(100);
    expect(table.size).toBe(0);
    sweeper.stop();
  });
});
