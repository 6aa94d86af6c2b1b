// Which entries a process remembers the expiry of, by its own clock.
import { expect, test } from "vitest";
import { OwnExpiries } from "../../../src/core/invalidation/own-expiries.ts";

test.each([
  ["the error is a twentieth of the ttl", 40, 2, false],
  ["the error is more than that", 40, 2.1, true],
  ["the time is known closely", 10_000, 5, false],
  ["the time comes from whole seconds, though they are known well", 10_000, 8, true],
  ["the longest of these ttls", 20_000, 8, true],
  ["a longer one", 20_001, 1_000, false],
])("%s", (_, ttlMs, errorMs, matters) => {
  expect(OwnExpiries.matters(ttlMs, () => errorMs)).toBe(matters);
});
