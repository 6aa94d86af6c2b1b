// Lifetimes as memcached takes them: whole seconds, a Unix time beyond 30 days, 0 for no expiry.
import { describe, expect, it } from "vitest";
import { lifetimeToken } from "../../../src/backends/memcached/commands.ts";

const NOW_S = 1_800_000_000;
const serverAt = (now: number) => ({ serverNow: () => now });
const token = (seconds: number): number => lifetimeToken(seconds * 1_000, serverAt(NOW_S * 1_000 + 400));
const DAY_S = 86_400;

describe("a lifetime", () => {
  it("has enough whole seconds to cover it, of which the first may be nearly over", () => {
    expect([0.0004, 0.5, 1, 1.5, 2, 59.9, 60].map((seconds) => token(seconds))).toEqual([
      2, 2, 2, 3, 3, 61, 61,
    ]);
  });

  it("of whole seconds gains none from a rounding error", () => {
    expect(lifetimeToken(1_000.000_2, serverAt(0))).toBe(2);
    expect(lifetimeToken(999.999_8, serverAt(0))).toBe(2);
  });

  it("of more than 30 days is a server time, because memcached would treat it as one", () => {
    expect(token(30 * DAY_S - 1)).toBe(30 * DAY_S);
    expect(token(30 * DAY_S)).toBe(NOW_S + 30 * DAY_S + 1);
    expect(token(365 * DAY_S)).toBe(NOW_S + 365 * DAY_S + 1);
  });

  it("that ends after 2038, where memcached's seconds end, never expires", () => {
    expect(token(2 ** 31 - 2 - NOW_S)).toBe(2 ** 31 - 1);
    expect(token(2 ** 31 - 1 - NOW_S)).toBe(0);
    expect(
      [1e15, 1e300, Number.POSITIVE_INFINITY].map((ms) => lifetimeToken(ms, serverAt(NOW_S * 1_000))),
    ).toEqual([0, 0, 0]);
  });
});
