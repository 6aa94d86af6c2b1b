// Which source each setting comes from: a flag beats the environment, the environment beats the file, then the default.
import { resolveConfig } from "./resolve.ts";
import { FIELD_NAMES, type FieldName } from "./schema.ts";
import type { CacheConfig, ResolvedConfig } from "./types.ts";

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

/** A field is taken whole from the first source that has it. */
export function layerConfig({ flags = {}, env = {}, file = {} }: ConfigLayers): LayeredConfig {
  const layers: readonly (readonly [FieldSource, CacheConfig])[] = [
    ["flag", flags],
    ["env", env],
    ["file", file],
  ];
  const chosen = FIELD_NAMES.map((field) => {
    const layer = layers.find(([, config]) => config[field] !== undefined);
    return { field, source: layer?.[0] ?? ("default" as const), value: layer?.[1][field] };
  });
  const sources = Object.fromEntries(chosen.map(({ field, source }) => [field, source]));
  return {
    config: resolveConfig(Object.fromEntries(chosen.map(({ field, value }) => [field, value]))),
    sources: sources as Record<FieldName, FieldSource>,
  };
}
