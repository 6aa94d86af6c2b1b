// When a login that expires is renewed, on a manual clock.
import { describe, expect, test } from "vitest";
import { type Login, LoginRenewal } from "../../../../src/backends/kv/server/login.ts";
import type { Clock } from "../../../../src/core/clock.ts";
import { ManualClock } from "../../../../src/testing/index.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function renewing(
  clock: Clock,
  next: () => number,
): { renewal: LoginRenewal; calls: number; errors: Error[] } {
  const seen = { calls: 0, errors: [] as Error[] };
  const login = (): Login => ({ username: undefined, password: "secret", expiresAt: next() });
  const renewal = new LoginRenewal({
    clock,
    renew: async () => {
      seen.calls++;
      return login();
    },
    failed: (error) => seen.errors.push(error),
  });
  renewal.schedule(login());
  return Object.assign(seen, { renewal });
}

/** Its wall clock was adjusted after the process began. */
const stepped = (clock: ManualClock, byMs: number): Clock => ({
  ...clock,
  now: clock.now,
  wall: () => clock.now() + byMs,
});

describe("an expiry", () => {
  test.each([-5 * HOUR, 5 * HOUR])("is a wall-clock time, adjusted by %i ms", async (byMs) => {
    const clock = new ManualClock();
    const seen = renewing(stepped(clock, byMs), () => clock.now() + byMs + HOUR);
    await clock.advance(HOUR - 2 * MINUTE);
    expect(seen.calls).toBe(0);
    await clock.advance(2 * MINUTE);
    expect(seen.calls).toBe(1);
    expect(seen.errors).toEqual([]);
    seen.renewal.cancel();
  });

  test.each([
    ["in seconds instead of milliseconds", (clock: Clock) => clock.now() / 1_000 + 3_600],
    ["that is past", (clock: Clock) => clock.now() - 1],
    ["before all times", () => Number.NEGATIVE_INFINITY],
  ])("%s is reported once, and the function is called less and less often", async (_, expiresAt) => {
    const clock = new ManualClock();
    const seen = renewing(clock, () => expiresAt(clock));
    await clock.advance(10 * MINUTE);
    expect(seen.calls).toBeGreaterThan(10);
    expect(seen.calls).toBeLessThan(40);
    expect(seen.errors.map(({ message }) => message)).toEqual([
      "the password function returned a login that has expired",
    ]);
    seen.renewal.cancel();
    expect(clock.pending).toBe(0);
  });
});
