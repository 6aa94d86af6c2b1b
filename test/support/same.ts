// `expect(got).toEqual(expected)` for the thousands of comparisons of a loop: that takes microseconds, also where all is equal.
import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";

export function expectSame(got: unknown, expected: unknown, what?: string): void {
  if (!isDeepStrictEqual(got, expected)) expect(got, what).toEqual(expected);
}
