// What an application hands to an integration may be anything, whatever its type says.
import { ConfigError, describeArrival } from "../../core/errors.ts";

export const hasMethod = (handed: unknown, name: string): boolean =>
  typeof (handed as Record<string, unknown> | null | undefined)?.[name] === "function";

/** For a caller who hands over something else than the library's own. */
export function notWanted(caller: string, expected: string, handed: unknown): ConfigError {
  const arrived = describeArrival(handed);
  return new ConfigError("ARGUMENT_INVALID", `${caller}(): expected ${expected}, got ${arrived}.`);
}
