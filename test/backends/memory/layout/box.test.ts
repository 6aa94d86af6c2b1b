import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Box, FURTHEST, heldValue, isBox, NO_SLOT } from "../../../../src/backends/memory/layout/box.ts";

const NEVER = Number.POSITIVE_INFINITY;
const NOW = Date.UTC(2026, 0, 1);
/** The first time that a box treats as never. */
const TOO_FAR = FURTHEST;

describe("a box", () => {
  test("reports its expiry to the millisecond, whatever it is", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (expires) => {
        expect(new Box("v", 1, expires).expires).toBe(expires);
      }),
    );
    expect(new Box("v", 1, Number.MAX_SAFE_INTEGER).expires).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("never expires later than requested, and less than a millisecond earlier", () => {
    for (const fraction of [0.001, 0.25, 0.5, 0.999]) {
      const { expires } = new Box("v", 1, NOW + 1_234 + fraction);
      expect(expires).toBe(NOW + 1_234);
    }
  });

  test("that never expires reports that", () => {
    expect(new Box("v", 1, NEVER).expires).toBe(NEVER);
  });

  test("treats what is further away than it can represent as never", () => {
    expect(new Box("v", 1, TOO_FAR).expires).toBe(NEVER);
    expect(new Box("v", 1, Number.MAX_VALUE).expires).toBe(NEVER);
    expect(new Box("v", 1, TOO_FAR - 1_024).expires).toBe(TOO_FAR - 1_024);
  });

  test("holds its value and its slot, which may not be known yet", () => {
    const value = { a: 1 };
    expect(new Box(value, 7, NOW).value).toBe(value);
    expect(new Box(value, 7, NOW).slot).toBe(7);
    expect(new Box(value, NO_SLOT, NOW).slot).toBe(-1);
  });
});

describe("a renewed box", () => {
  test("has the new value and expiry and its old slot", () => {
    const box = new Box("old", 7, NOW + 5_000);
    for (const expires of [NOW + 90_001, NOW + 7, NEVER, NOW + 12_345, TOO_FAR, NOW]) {
      box.renew(expires, expires);
      expect(box.value).toBe(expires);
      expect(box.expires).toBe(expires === TOO_FAR ? NEVER : expires);
      expect(box.slot).toBe(7);
    }
  });

  test.each([
    { from: NOW + 5_000, to: NOW + 5_000, later: true, what: "the same time" },
    { from: NOW + 5_000, to: NOW + 5_001, later: true, what: "a millisecond later" },
    { from: NOW + 5_999, to: NOW + 6_000, later: true, what: "the next second" },
    { from: NOW + 6_000, to: NOW + 5_999, later: false, what: "the second before" },
    { from: NOW + 5_000, to: NEVER, later: true, what: "never" },
    { from: NEVER, to: NEVER, later: true, what: "never again" },
    { from: NEVER, to: NOW + 5_000, later: false, what: "some time instead of never" },
    { from: NEVER, to: TOO_FAR - 1_024, later: false, what: "the last time it can tell instead of never" },
    { from: NOW - 60_000, to: NOW - 120_000, later: false, what: "an earlier time in the past" },
  ])("for $what reports whether it expires no earlier: $later", ({ from, to, later }) => {
    expect(new Box("v", 1, from).renew("v", to)).toBe(later);
  });
});

test("the value of what a page holds is that of a box, or the item itself", () => {
  const value = { a: 1 };
  expect(heldValue(new Box(value, 1, NOW))).toBe(value);
  for (const plain of [value, 0, "", null, false]) expect(heldValue(plain)).toBe(plain);
});

test("nothing but a box is treated as one, whatever its constructor claims to be", () => {
  const values = [
    null,
    0,
    "",
    false,
    1n,
    {},
    Object.create(null),
    { constructor: Object },
    [Box],
    new Date(0),
  ];
  for (const value of values) {
    expect(isBox(value)).toBe(false);
    expect(heldValue(value)).toBe(value);
    expect(heldValue(new Box(value, 1, 5))).toBe(value);
  }
  expect(isBox(undefined)).toBe(false);
});
