import { describe, expect, test } from "vitest";
import { Sweeper } from "../../../src/backends/memory/expiry.ts";
import { type SlotIndex, type SlotSeal, Slots } from "../../../src/backends/memory/slots.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LIVE, MortalSeal } from "./seal.ts";

const NEVER = Number.POSITIVE_INFINITY;

function open(clock: ManualClock): { slots: Slots<SlotSeal>; index: SlotIndex } {
  const slots = new Slots<SlotSeal>({ maxEntries: 100_000, maxBytes: NEVER, clock });
  return { slots, index: slots.openIndex() };
}

describe("sweep", () => {
  test("reclaims all that has expired within as many calls as the budget goes into the slots", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    for (let at = 0; at < 1_000; at++) {
      slots.put(index, `k${at}`, at, LIVE, 0, at % 3 === 0 ? NEVER : clock.now() + 1_000);
    }
    expect(slots.sweep(1_000)).toBe(0);
    await clock.advance(1_000);
    let reclaimed = 0;
    for (let call = 0; call < Math.ceil(1_000 / 64); call++) reclaimed += slots.sweep(64);
    expect(reclaimed).toBe(666);
    expect([...index.keys()].every((key) => Number(key.slice(1)) % 3 === 0)).toBe(true);
  });

  test("looks at no more slots than it is told to", () => {
    const { slots, index } = open(new ManualClock());
    const seal = new MortalSeal();
    for (let at = 0; at < 500; at++) slots.put(index, `k${at}`, at, seal, 0, NEVER);
    seal.asked = 0;
    slots.sweep(50);
    expect(seal.asked).toBe(50);
  });

  test("leaves an expired entry while its stale value may still be used", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    slots.put(index, "plain", 1, LIVE, 0, clock.now() + 1_000);
    slots.put(index, "stale", 1, LIVE, 0, clock.now() + 1_000, clock.now() + 5_000);
    await clock.advance(4_999);
    slots.sweep(10);
    expect([...index.keys()]).toEqual(["stale"]);
    await clock.advance(1);
    expect(slots.sweep(10)).toBe(1);
    expect(slots.size).toBe(0);
  });

  test("reclaims entries whose seal is dead, in every index", () => {
    const { slots, index } = open(new ManualClock());
    const other = slots.openIndex();
    const seal = new MortalSeal();
    for (let at = 0; at < 100; at++) {
      slots.put(at % 2 === 0 ? index : other, `dead ${at}`, at, seal, 0, NEVER);
      slots.put(at % 2 === 0 ? index : other, `live ${at}`, at, LIVE, 0, NEVER);
    }
    seal.live = false;
    expect(slots.sweep(200)).toBe(100);
    expect([index.size, other.size]).toEqual([50, 50]);
    expect([...index.keys(), ...other.keys()].every((key) => key.startsWith("live"))).toBe(true);
  });

  test("happens a little with every insertion, so that a busy store stays clean by itself", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    for (let at = 0; at < 1_000; at++) slots.put(index, `old ${at}`, at, LIVE, 0, clock.now() + 1_000);
    await clock.advance(1_000);
    for (let at = 0; at < 600; at++) slots.put(index, `new ${at}`, at, LIVE, 0, NEVER);
    expect(slots.size).toBe(600);
  });
});

describe("the sweeper", () => {
  test("has a timer only while there are entries", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    const sweeper = new Sweeper(slots, clock);
    sweeper.start();
    expect(clock.pending).toBe(0);
    slots.put(index, "a", 1, LIVE, 0, clock.now() + 1_000);
    slots.put(index, "b", 1, LIVE, 0, clock.now() + 1_000);
    expect(clock.pending).toBe(1);
    await clock.advance(60_000);
    expect([slots.size, clock.pending]).toEqual([0, 0]);
    slots.put(index, "c", 1, LIVE, 0, NEVER);
    expect(clock.pending).toBe(1);
    sweeper.stop();
  });

  test("finds the entries that were there before it started", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    slots.put(index, "a", 1, LIVE, 0, clock.now() + 1_000);
    const sweeper = new Sweeper(slots, clock);
    sweeper.start();
    await clock.advance(60_000);
    expect(slots.size).toBe(0);
  });

  test("leaves no timer once stopped, and can be started again", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    const sweeper = new Sweeper(slots, clock);
    sweeper.start();
    slots.put(index, "a", 1, LIVE, 0, clock.now() + 1_000);
    sweeper.stop();
    expect(clock.pending).toBe(0);
    slots.remove(index, "a");
    slots.put(index, "b", 1, LIVE, 0, clock.now() + 1_000);
    expect(clock.pending).toBe(0);
    sweeper.start();
    await clock.advance(60_000);
    expect(slots.size).toBe(0);
    sweeper.stop();
    sweeper.stop();
  });

  test("passes over a large store within half a minute, in slices", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    const sweeper = new Sweeper(slots, clock);
    const seal = new MortalSeal();
    for (let at = 0; at < 50_000; at++) slots.put(index, `k${at}`, at, seal, 0, NEVER);
    sweeper.start();
    seal.asked = 0;
    let most = 0;
    let total = 0;
    for (let tenth = 0; tenth < 300; tenth++) {
      seal.asked = 0;
      await clock.advance(100);
      most = Math.max(most, seal.asked);
      total += seal.asked;
    }
    expect(total).toBeGreaterThanOrEqual(50_000);
    expect(most).toBeLessThanOrEqual(10_000);
    sweeper.stop();
  });

  test("makes haste while much has expired", async () => {
    const clock = new ManualClock();
    const { slots, index } = open(clock);
    const sweeper = new Sweeper(slots, clock);
    for (let at = 0; at < 50_000; at++) slots.put(index, `k${at}`, at, LIVE, 0, clock.now() + 30_000);
    await clock.advance(30_000);
    sweeper.start();
    await clock.advance(4_000);
    expect(slots.size).toBe(0);
    sweeper.stop();
  });
});
