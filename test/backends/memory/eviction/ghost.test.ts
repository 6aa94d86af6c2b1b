import { describe, expect, test } from "vitest";
import {
  type Departure,
  Ghost,
  leftWindowRecently,
  recalledCount,
  wasPushedOut,
} from "../../../../src/backends/memory/eviction/ghost.ts";
import { KeyHash } from "../../../../src/backends/memory/layout/key-hash.ts";

const keyHash = new KeyHash(() => "12345678");
const hash = (name: string): number => keyHash.of(name, 0) >>> 0;

function countOf(ghost: Ghost, name: string): number {
  return recalledCount(ghost.recall(hash(name)));
}

describe("a departed key", () => {
  test("is recalled once, with its count", () => {
    const ghost = new Ghost(1_000);
    ghost.remember(hash("a"), 9, "main");
    expect(countOf(ghost, "b")).toBe(0);
    expect(countOf(ghost, "a")).toBe(9);
    expect(countOf(ghost, "a")).toBe(0);
  });

  test.each<[Departure, boolean, boolean]>([
    ["window", true, true],
    ["main", true, false],
    ["itself", false, false],
  ])("that left by %s is reported as such: pushed out %s, recently %s", (departure, pushedOut, recently) => {
    const ghost = new Ghost(1_000);
    ghost.remember(hash("a"), 2, departure);
    const recalled = ghost.recall(hash("a"));
    expect([wasPushedOut(recalled), leftWindowRecently(recalled)]).toEqual([pushedOut, recently]);
  });

  test("that is not remembered was neither pushed out nor recent", () => {
    const recalled = new Ghost(10).recall(hash("a"));
    expect([wasPushedOut(recalled), leftWindowRecently(recalled)]).toEqual([false, false]);
  });

  test("is recent for about an eighth as many departures as there are slots", () => {
    for (const [departures, recent] of [
      [100, true],
      [160, false],
    ] as const) {
      const ghost = new Ghost(1_000);
      ghost.remember(hash("a"), 8, "window");
      for (let at = 0; at < departures; at++) ghost.remember(hash(`other ${at}`), 1, "window");
      expect(leftWindowRecently(ghost.recall(hash("a")))).toBe(recent);
    }
  });
});

describe("halving", () => {
  test("halves every count, once per request, and forgets those that reach zero", () => {
    const ghost = new Ghost(1_000);
    for (let at = 0; at < 100; at++) ghost.remember(hash(`k${at}`), 12, "main");
    ghost.remember(hash("rare"), 1, "main");
    ghost.halve();
    expect(countOf(ghost, "rare")).toBe(0);
    ghost.halve();
    for (let at = 0; at < 100; at++) expect(countOf(ghost, `k${at}`)).toBe(3);
  });

  test("leaves keys remembered afterwards alone", () => {
    const ghost = new Ghost(10);
    ghost.halve();
    ghost.remember(hash("a"), 12, "main");
    expect(countOf(ghost, "a")).toBe(12);
  });
});

describe("a full table", () => {
  test("remembers about four times as many keys as there are slots, the newest ones", () => {
    const ghost = new Ghost(1_000);
    for (let at = 0; at < 16_000; at++) ghost.remember(hash(`k${at}`), 2, "window");
    let recalled = 0;
    for (let at = 13_000; at < 16_000; at++) if (countOf(ghost, `k${at}`) > 0) recalled++;
    expect(recalled).toBeGreaterThan(2_500);
    for (let at = 0; at < 2_000; at++) if (countOf(ghost, `k${at}`) > 0) recalled = -1;
    expect(recalled).not.toBe(-1);
  });

  test("forgets the least used keys first", () => {
    const ghost = new Ghost(1_000);
    for (let at = 0; at < 500; at++) ghost.remember(hash(`often ${at}`), 10, "main");
    for (let at = 0; at < 10_000; at++) ghost.remember(hash(`once ${at}`), 1, "window");
    let kept = 0;
    for (let at = 0; at < 500; at++) if (countOf(ghost, `often ${at}`) === 10) kept++;
    expect(kept).toBeGreaterThan(490);
  });

  test("mistakes few keys for others", () => {
    const ghost = new Ghost(1_000);
    for (let at = 0; at < 3_000; at++) ghost.remember(hash(`k${at}`), 2, "window");
    let mistaken = 0;
    for (let at = 0; at < 10_000; at++) if (countOf(ghost, `other ${at}`) > 0) mistaken++;
    expect(mistaken).toBeLessThan(20);
  });
});
