// Lifetimes as memcached takes them: whole seconds, a time since the epoch beyond 30 days, 0 for ever.
import { describe, expect, it } from "vitest";
import { lifetimeToken } from "../../../src/backends/memcached/commands.ts";

const NOW_S = 1_800_000_000;
const token = (seconds: number, roundsUp = false): number =>
  lifetimeToken(seconds * 1_000, roundsUp, NOW_S * 1_000 + 400);
const DAY_S = 86_400;

describe("a lifetime", () => {
  it("is rounded down to whole seconds, and never to 0, which is for ever", () => {
    expect([0.0004, 0.5, 1, 1.999_8, 2, 59.9, 60].map((seconds) => token(seconds))).toEqual([
      1, 1, 1, 2, 2, 59, 60,
    ]);
  });

  it("has one second more where a record's own expiry is held to", () => {
    expect([0.0004, 1, 1.5, 60].map((seconds) => token(seconds, true))).toEqual([1, 2, 2, 61]);
  });

  it("keeps the whole seconds of a lifetime that was computed a moment late", () => {
    expect(lifetimeToken(999.2, false, 0)).toBe(1);
    expect(lifetimeToken(1_999.2, true, 0)).toBe(3);
    expect(lifetimeToken(1_900, false, 0)).toBe(1);
  });

  it("of more than 30 days is a time of the server, because memcached would take it for one", () => {
    expect(token(30 * DAY_S)).toBe(30 * DAY_S);
    expect(token(30 * DAY_S + 1)).toBe(NOW_S + 30 * DAY_S + 1);
    expect(token(365 * DAY_S)).toBe(NOW_S + 365 * DAY_S);
  });

  it("that ends after 2038, where memcached's seconds end, is for ever", () => {
    expect(token(2 ** 31 - 1 - NOW_S)).toBe(2 ** 31 - 1);
    expect(token(2 ** 31 - NOW_S)).toBe(0);
    expect(
      [1e15, 1e300, Number.POSITIVE_INFINITY].map((ms) => lifetimeToken(ms, false, NOW_S * 1_000)),
    ).toEqual([0, 0, 0]);
  });
});
