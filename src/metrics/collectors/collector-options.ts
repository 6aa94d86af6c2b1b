// Validates collector options; every error says what was expected and what arrived.
import type { MetricTags } from "../../core/collector.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";

const invalid = (expected: string, arrived: unknown): ConfigError =>
  new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);

export function requireText(value: unknown, name: string): string {
  if (typeof value === "string") return value;
  throw invalid(`${name} must be a string`, value);
}

/** Not empty: a socket would take that for all addresses, or for localhost. */
export function requireHost(value: unknown): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw invalid("host must be a name or an address", value);
}

/** Whether it is a valid sample rate. */
export const isSampleRate = (value: number): boolean => value > 0 && value <= 1;

export function requirePort(value: unknown, least: 0 | 1): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= 65_535)
    return value as number;
  throw invalid(`port must be a whole number from ${least} to 65535`, value);
}

export function requireFlag(value: unknown, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw invalid(`${name} must be true or false`, value);
}

/** A number above 0 and at most `max`. */
export function requirePositive(value: unknown, name: string, max: number): number {
  if (typeof value === "number" && value > 0 && value <= max) return value;
  throw invalid(`${name} must be a number above 0${max === Infinity ? "" : ` and at most ${max}`}`, value);
}

/** Constant labels, none of which a metric uses itself. */
export function requireLabels(value: unknown, taken: ReadonlySet<string>): MetricTags {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalid("labels must be an object of strings", value);
  }
  for (const [name, text] of Object.entries(value)) {
    if (!/^(?!__)[a-zA-Z_]\w*$/.test(name) || name === "le") {
      throw invalid("a label's name must be letters, digits and underscores, and not le", name);
    }
    if (taken.has(name)) throw invalid(`a label's name must be none of ${[...taken].join(", ")}`, name);
    if (typeof text !== "string") throw invalid(`the label ${name} must be a string`, text);
  }
  return { ...(value as MetricTags) };
}
