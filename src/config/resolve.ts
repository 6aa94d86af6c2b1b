// Turns what the user wrote into a complete configuration, and layers flags, environment and file.
import { CODE, type Origin, rootOf } from "./place.ts";
import { type FieldName, fieldNames, fields } from "./schema.ts";
import { checkGiven } from "./shape.ts";
import type { CacheConfig, CheckedConfig, ResolvedConfig } from "./types.ts";

/** Checks the given fields without adding defaults. Throws ConfigError. */
export function checkConfig(input: unknown, origin: Origin = CODE): CheckedConfig {
  return checkGiven<ResolvedConfig>(fields(), input, rootOf(origin)) as CheckedConfig;
}

/**
 * A complete configuration. Throws ConfigError: CONFIG_UNKNOWN_FIELD for an unknown key, CONFIG_INVALID for an invalid
 * value; both name the field as the caller spelled it.
 */
export function resolveConfig(input: unknown = {}, origin: Origin = CODE): ResolvedConfig {
  const given: Readonly<Record<string, unknown>> = checkConfig(input, origin);
  const whole = fieldNames().map((field) => [field, given[field] ?? fields()[field].default]);
  return Object.freeze(Object.fromEntries(whole) as unknown as ResolvedConfig);
}

export type FieldSource = "flag" | "env" | "file" | "default";

export interface ConfigLayers {
  readonly flags?: CacheConfig;
  readonly env?: CacheConfig;
  readonly file?: CacheConfig;
}

export interface LayeredConfig {
  readonly config: ResolvedConfig;
  readonly sources: Readonly<Record<FieldName, FieldSource>>;
}

/** Flags override the environment, which overrides the file. A field comes from one source as a whole; nothing is merged. */
export function layerConfig({ flags = {}, env = {}, file = {} }: ConfigLayers): LayeredConfig {
  const layers: readonly (readonly [FieldSource, CacheConfig])[] = [
    ["flag", flags],
    ["env", env],
    ["file", file],
  ];
  const chosen = fieldNames().map((field) => {
    const layer = layers.find(([, config]) => config[field] !== undefined);
    return { field, source: layer?.[0] ?? ("default" as const), value: layer?.[1][field] };
  });
  const sources = Object.fromEntries(chosen.map(({ field, source }) => [field, source]));
  return {
    config: resolveConfig(Object.fromEntries(chosen.map(({ field, value }) => [field, value]))),
    sources: sources as Record<FieldName, FieldSource>,
  };
}
