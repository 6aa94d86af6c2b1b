import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TICK_MS, tickOf, Wheel } from "../../../../src/backends/memory/expiry/wheel.ts";
import { Rows } from "../../../../src/backends/memory/layout/rows.ts";
import { expectSame } from "../../../support/same.ts";

const START = tickOf(Date.UTC(2026, 0, 1));
/** One turn of the wheel. */
const TURN = 4_096;

/** Slots 0 to `slots` - 1, unlinked, and a wheel that stands at START. */
function open(slots: number): Wheel {
  const rows = new Rows<unknown>(slots);
  for (let at = 0; at < slots; at++) {
    rows.reserve();
    rows.allocate(`k${at}`, 0, 0);
  }
  const wheel = new Wheel(rows);
  wheel.start(START);
  return wheel;
}

/** Ticks are counted from START. */
const timeOf = (tick: number): number => (START + tick) * TICK_MS;

function takeAll(wheel: Wheel, end: number): number[] {
  const taken: number[] = [];
  for (let slot = wheel.take(START + end); slot >= 0; slot = wheel.take(START + end)) taken.push(slot);
  return taken;
}

const sorted = (slots: Iterable<number>): number[] => [...slots].sort((a, b) => a - b);

describe("a slot", () => {
  test("comes up once, in the second it is due and not before", () => {
    const wheel = open(3);
    wheel.link(0, timeOf(5));
    wheel.link(1, timeOf(5) + TICK_MS - 1);
    wheel.link(2, timeOf(6));
    expect(takeAll(wheel, 5)).toEqual([]);
    expect(sorted(takeAll(wheel, 6))).toEqual([0, 1]);
    expect(takeAll(wheel, 6)).toEqual([]);
    expect(takeAll(wheel, 7)).toEqual([2]);
    expect(takeAll(wheel, 7 + 2 * TURN)).toEqual([]);
    expect(wheel.size).toBe(0);
  });

  test("comes up after those that are due before it", () => {
    const wheel = open(200);
    const due = Array.from({ length: 200 }, (_, slot) => (slot * 1_237) % 3_000);
    for (const [slot, tick] of due.entries()) wheel.link(slot, timeOf(tick));
    const taken = takeAll(wheel, 3_000).map((slot) => due[slot] as number);
    expect(taken).toEqual(sorted(due));
  });

  test("comes up even if the next clock reading is slightly behind", () => {
    const wheel = open(2);
    wheel.link(0, timeOf(0));
    wheel.link(1, timeOf(TURN - 1));
    // After more than a turn it begins one turn before the end: the first slot is there, and the second at the very end.
    expect(wheel.take(START + 3 * TURN)).toBe(0);
    expect(takeAll(wheel, 3 * TURN - 6)).toEqual([1]);
    expect(wheel.firstOpen).toBe(START + 3 * TURN);
  });

  test("that was due before the wheel began comes up first", () => {
    const wheel = open(2);
    wheel.link(0, timeOf(1));
    wheel.link(1, timeOf(-50));
    expect(takeAll(wheel, 1)).toEqual([1]);
    expect(takeAll(wheel, 2)).toEqual([0]);
  });

  test("that is due beyond one turn comes up as late as the wheel reaches, to be linked again", () => {
    const wheel = open(1);
    wheel.link(0, timeOf(10 * TURN));
    expect(takeAll(wheel, TURN - 1)).toEqual([]);
    expect(takeAll(wheel, TURN)).toEqual([0]);
    wheel.link(0, timeOf(10 * TURN));
    expect(takeAll(wheel, 2 * TURN - 1)).toEqual([]);
    expect(takeAll(wheel, 2 * TURN)).toEqual([0]);
  });

  test("comes up however far the wheel is behind", () => {
    for (const late of [TURN - 1, TURN, TURN + 1, 2 * TURN + 17, 1_000_000]) {
      const wheel = open(4);
      for (const [slot, tick] of [0, 1, 2_000, TURN - 1].entries()) wheel.link(slot, timeOf(tick));
      expect(sorted(takeAll(wheel, late + TURN))).toEqual([0, 1, 2, 3]);
      expect([wheel.size, wheel.next, wheel.firstOpen]).toEqual([
        0,
        START + late + TURN,
        START + late + TURN,
      ]);
      wheel.link(0, timeOf(late + TURN + 3));
      expect([takeAll(wheel, late + TURN + 3), takeAll(wheel, late + TURN + 4)]).toEqual([[], [0]]);
    }
  });

  test("that falls due while a late wheel catches up comes up with the others", () => {
    const wheel = open(3);
    for (const slot of [0, 1]) wheel.link(slot, timeOf(slot));
    const end = START + 3 * TURN;
    const first = wheel.take(end);
    wheel.link(2, timeOf(2));
    expect(sorted([first, ...takeAll(wheel, 3 * TURN)])).toEqual([0, 1, 2]);
  });

  test("that is unlinked does not come up, wherever in its second it was", () => {
    for (const leaving of [0, 1, 2, 3, 4]) {
      const wheel = open(5);
      for (let slot = 0; slot < 5; slot++) wheel.link(slot, timeOf(7));
      wheel.unlink(leaving);
      expect(wheel.size).toBe(4);
      expect(sorted(takeAll(wheel, 8))).toEqual([0, 1, 2, 3, 4].filter((slot) => slot !== leaving));
    }
  });

  test("can be unlinked while its second is being processed", () => {
    for (const at of [0, 1, 2, 3]) {
      const wheel = open(5);
      for (let slot = 0; slot < 5; slot++) wheel.link(slot, timeOf(7));
      const first = wheel.take(START + 8);
      const others = [0, 1, 2, 3, 4].filter((slot) => slot !== first);
      const [leaving] = others.splice(at, 1);
      wheel.unlink(leaving as number);
      expect(sorted(takeAll(wheel, 8))).toEqual(others);
      expect(wheel.size).toBe(0);
    }
  });

  test("that is not linked can be unlinked, to no effect", () => {
    const wheel = open(2);
    wheel.link(0, timeOf(1));
    wheel.unlink(1);
    expect(wheel.size).toBe(1);
    wheel.unlink(0);
    wheel.unlink(0);
    expect([wheel.size, takeAll(wheel, 2)]).toEqual([0, []]);
  });

  test("reports whether it is due by a time", () => {
    const wheel = open(2);
    wheel.link(0, timeOf(7) + 500);
    expect(wheel.comesBy(0, timeOf(7) - 1)).toBe(false);
    expect(wheel.comesBy(0, timeOf(7))).toBe(true);
    expect(wheel.comesBy(0, Number.POSITIVE_INFINITY)).toBe(true);
    expect(wheel.comesBy(1, Number.POSITIVE_INFINITY)).toBe(false);
    wheel.link(1, timeOf(5 * TURN));
    expect([wheel.comesBy(1, timeOf(TURN - 1) - 1), wheel.comesBy(1, timeOf(TURN - 1))]).toEqual([
      false,
      true,
    ]);
    takeAll(wheel, 8);
    expect(wheel.comesBy(0, Number.POSITIVE_INFINITY)).toBe(false);
  });
});

describe("the first open tick", () => {
  test("stays while one of its slots may still come up", () => {
    const wheel = open(3);
    for (let slot = 0; slot < 3; slot++) wheel.link(slot, timeOf(2));
    for (let taken = 0; taken < 3; taken++) {
      expect(wheel.take(START + 10)).toBeGreaterThanOrEqual(0);
      expect(wheel.firstOpen).toBeLessThanOrEqual(START + 2);
    }
    expect(wheel.take(START + 10)).toBe(-1);
    expect(wheel.firstOpen).toBe(START + 10);
  });

  test("does not go back when a smaller one is requested", () => {
    const wheel = open(1);
    wheel.take(START + 10);
    wheel.take(START + 5);
    expect([wheel.next, wheel.firstOpen]).toEqual([START + 10, START + 10]);
  });

  test("is where an empty wheel is set to", () => {
    const wheel = open(1);
    wheel.start(START + 100_000);
    expect([wheel.next, wheel.firstOpen]).toEqual([START + 100_000, START + 100_000]);
    wheel.link(0, timeOf(0));
    expect(takeAll(wheel, 100_001)).toEqual([0]);
  });
});

type Step =
  | { readonly do: "link"; readonly slot: number; readonly inTicks: number }
  | { readonly do: "unlink"; readonly slot: number }
  | { readonly do: "turn"; readonly ticks: number; readonly most: number };

const SLOTS = 40;
const slot = fc.nat(SLOTS - 1);
const inTicks = fc.oneof(
  fc.integer({ min: -5, max: 12 }),
  fc.integer({ min: TURN - 5, max: TURN + 5 }),
  fc.integer({ min: -5, max: 4 * TURN }),
);
const turned = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 6 }) },
  { weight: 1, arbitrary: fc.integer({ min: TURN - 3, max: TURN + 3 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 * TURN }) },
);
const most = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(Number.POSITIVE_INFINITY));
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("link" as const), slot, inTicks }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("unlink" as const), slot }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("turn" as const), ticks: turned, most }) },
  ),
  { maxLength: 150, size: "max" },
);

/** Takes at most `atMost` slots before `end`; slots that came up early are linked again. Returns those that were due. */
function turn(wheel: Wheel, due: ReadonlyMap<number, number>, end: number, atMost: number): number[] {
  const handed: number[] = [];
  for (let seen = 0; seen < atMost; seen++) {
    const at = wheel.take(START + end);
    if (at < 0) return handed;
    const tick = due.get(at) ?? Number.NaN;
    if (START + tick < wheel.next) handed.push(at);
    else wheel.link(at, timeOf(tick));
  }
  return handed;
}

test("a wheel agrees with a list of due times, whatever is linked, unlinked and skipped", () => {
  fc.assert(
    fc.property(steps, (todo) => {
      const wheel = open(SLOTS);
      const due = new Map<number, number>();
      let now = 0;
      for (const step of todo) {
        if (step.do === "link") {
          wheel.unlink(step.slot);
          wheel.link(step.slot, timeOf(now + step.inTicks));
          // What is already past comes with the first tick that is still in the wheel.
          due.set(step.slot, Math.max(now + step.inTicks, wheel.next - START));
        } else if (step.do === "unlink") {
          wheel.unlink(step.slot);
          due.delete(step.slot);
        } else {
          now += step.ticks;
          for (const at of turn(wheel, due, now, step.most)) {
            expect(due.get(at)).toBeLessThan(now);
            due.delete(at);
          }
          const waiting = [...due.values()].filter((tick) => tick < now);
          if (step.most === Number.POSITIVE_INFINITY) {
            expectSame([waiting, wheel.firstOpen], [[], START + now]);
          }
        }
        expectSame(wheel.size, due.size);
        if (!(wheel.firstOpen <= wheel.next)) expect(wheel.firstOpen).toBeLessThanOrEqual(wheel.next);
        const lost = [...due.keys()].filter((at) => !wheel.comesBy(at, Number.POSITIVE_INFINITY));
        expectSame(lost, []);
      }
      now += 5 * TURN;
      expect(sorted(turn(wheel, due, now, Number.POSITIVE_INFINITY))).toEqual(sorted(due.keys()));
    }),
    { numRuns: 80 },
  );
});
