// Validates arguments of the testing tools: a misspelled fault would never occur, and the test would pass for the wrong reason.
import { requireOptions } from "../core/arguments.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { suggestName } from "../core/suggest-name.ts";

function refuse(expected: string, arrived: unknown): never {
  throw new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);
}

/** Requires an object with these methods. */
export function requireMethods(what: string, value: unknown, methods: readonly string[]): void {
  if (typeof value !== "object" || value === null) refuse(`${what} must be an object`, value);
  for (const method of methods) {
    const found: unknown = Reflect.get(value, method);
    if (typeof found !== "function") refuse(`${what} must have the method ${method}`, found);
  }
}

/** Requires an object in which each of these is a boolean. */
export function requireFlags(what: string, value: unknown, flags: readonly string[]): void {
  if (typeof value !== "object" || value === null) refuse(`${what} must be an object`, value);
  for (const flag of flags) {
    const found: unknown = Reflect.get(value, flag);
    if (typeof found !== "boolean") refuse(`${what}.${flag} must be true or false`, found);
  }
}

export function requireChoice(what: string, value: unknown, choices: readonly string[]): void {
  if (typeof value === "string" && choices.includes(value)) return;
  const arrived = describeArrival(value);
  const hint = typeof value === "string" ? suggestName(value, choices) : `use one of ${choices.join(", ")}`;
  throw new ConfigError("ARGUMENT_INVALID", `${what} must be a known name, got ${arrived}: ${hint}`);
}

/** Requires a finite duration in milliseconds. */
export function requireSpan(what: string, ms: unknown): number {
  if (typeof ms === "number" && ms >= 0 && ms < Number.POSITIVE_INFINITY) return ms;
  return refuse(`${what} must be a finite number of milliseconds of at least 0`, ms);
}

export function requireWhole(what: string, value: unknown): number {
  return Number.isSafeInteger(value) ? (value as number) : refuse(`${what} must be a whole number`, value);
}

export function requireTimes(times: unknown): number {
  const isCount = Number.isSafeInteger(times) && (times as number) >= 0;
  if (isCount || times === Number.POSITIVE_INFINITY) return times as number;
  return refuse("times must be a whole number of at least 0, or Infinity", times);
}

export function requireError(error: unknown): Error {
  return error instanceof Error ? error : refuse("error must be an Error", error);
}

interface Chances {
  readonly drop?: number;
  readonly lose?: number;
  readonly delayMs?: number;
}

export function requireChances<T extends Chances>(chances: T): T {
  requireOptions(chances, ["drop", "lose", "delayMs"]);
  const { drop = 0, lose = 0, delayMs = 0 } = chances;
  for (const [name, chance] of Object.entries({ drop, lose, "drop and lose together": drop + lose })) {
    if (typeof chance !== "number" || !(chance >= 0 && chance <= 1))
      refuse(`${name} must be from 0 to 1`, chance);
  }
  requireSpan("delayMs", delayMs);
  return chances;
}
