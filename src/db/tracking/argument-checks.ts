// Checks of the arguments of the integrations, and their errors.
import type { CacheForSessions } from "../../core/db-session.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";

/** Throws ConfigError ARGUMENT_INVALID. */
export function requireCache(caller: string, cache: Partial<CacheForSessions> | undefined): void {
  const methods = [cache?.get, cache?.getOrSet, cache?.invalidateTags];
  if (methods.every((method) => typeof method === "function")) return;
  throw invalidArgument(caller, "cache", "a cache with get, getOrSet and invalidateTags", cache);
}

export function invalidArgument(
  caller: string,
  what: string,
  expected: string,
  arrived: unknown,
): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `${caller}(): ${what} must be ${expected}; got ${describeArrival(arrived)}.`,
  );
}

export const hasMethod = (value: unknown, name: string): boolean =>
  typeof (value as Record<string, unknown> | null | undefined)?.[name] === "function";

/** An argument that is not an object of the expected library. */
export function wrongArgument(caller: string, expected: string, value: unknown): ConfigError {
  const arrived = describeArrival(value);
  return new ConfigError("ARGUMENT_INVALID", `${caller}(): expected ${expected}, got ${arrived}.`);
}
