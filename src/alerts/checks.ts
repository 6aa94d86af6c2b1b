// Argument checks whose errors say what was expected and what arrived, and never show a secret.
import { OR_TEXT, toSeconds } from "../core/duration.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { suggestName } from "../core/suggest-name.ts";

/** `arrived` describes the value; for one that may hold a secret, only what is wrong with it. */
export function refusal(field: string, expected: string, arrived: string, hint?: string): ConfigError {
  const details = hint === undefined ? {} : { hint };
  return new ConfigError("CONFIG_INVALID", `${field} must be ${expected}, got ${arrived}`, details);
}

export function requireOneOf<T extends string>(field: string, names: readonly T[], value: unknown): T {
  const found = names.find((name) => name === value);
  if (found !== undefined) return found;
  if (typeof value !== "string") throw refusal(field, `one of ${names.join(", ")}`, describeArrival(value));
  const message = `unknown ${field} ${describeArrival(value)}: ${suggestName(value, names)}`;
  throw new ConfigError("CONFIG_INVALID", message);
}

export function requireNumber(field: string, value: unknown): number {
  if (Number.isFinite(value)) return value as number;
  throw refusal(field, "a finite number", describeArrival(value));
}

export interface SecondsRule {
  readonly least: number;
  /** Whether Infinity is allowed. */
  readonly orNever?: boolean;
}

/** Takes a duration, returns milliseconds. */
export function requireSeconds(
  field: string,
  value: unknown,
  { least, orNever = false }: SecondsRule,
): number {
  const seconds = toSeconds(value);
  const isNumber = typeof seconds === "number" && seconds >= least;
  if (isNumber && (orNever || Number.isFinite(seconds))) return seconds * 1000;
  const expected = `a ${orNever ? "" : "finite "}number of seconds, at least ${least}${orNever ? ", or Infinity" : ""}, ${OR_TEXT}`;
  throw refusal(field, expected, describeArrival(value));
}

/** Text shown in messages; a lone surrogate could not be sent. */
export function requireText(field: string, value: unknown, mostCharacters: number): string {
  const isText = typeof value === "string" && value.trim() !== "" && value.length <= mostCharacters;
  if (isText && !/[\ud800-\udfff]/u.test(value)) return value;
  throw refusal(field, `a non-empty string of at most ${mostCharacters} characters`, describeArrival(value));
}

/** One string or several, without duplicates. */
export function requireStrings(field: string, value: unknown): readonly string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  for (const item of list) {
    if (typeof item !== "string")
      throw refusal(field, "a string or a list of strings", describeArrival(item));
  }
  if (list.length === 0) throw refusal(field, "a string or a list of strings", "an empty list");
  return [...new Set(list as string[])];
}
