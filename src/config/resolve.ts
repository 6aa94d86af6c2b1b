// From what a user wrote to a complete configuration.
import { CODE, type Origin, rootOf } from "./place.ts";
import { FIELD_NAMES, FIELDS } from "./schema.ts";
import { checkGiven } from "./shape.ts";
import type { CheckedConfig, ResolvedConfig } from "./types.ts";

/** The fields that are given, each checked; nothing is filled in. Throws ConfigError. */
export function checkConfig(input: unknown, origin: Origin = CODE): CheckedConfig {
  return checkGiven<ResolvedConfig>(FIELDS, input, rootOf(origin)) as CheckedConfig;
}

/**
 * A complete configuration. Throws ConfigError: CONFIG_UNKNOWN_FIELD for a key that is no field, CONFIG_INVALID for a
 * value that is not allowed; both name the field as the caller spelled it.
 */
export function resolveConfig(input: unknown = {}, origin: Origin = CODE): ResolvedConfig {
  const given: Readonly<Record<string, unknown>> = checkConfig(input, origin);
  const whole = FIELD_NAMES.map((field) => [field, given[field] ?? FIELDS[field].default]);
  return Object.freeze(Object.fromEntries(whole) as unknown as ResolvedConfig);
}
