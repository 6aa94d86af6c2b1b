// The configuration a command works with: flags, then the environment, then the file, then the defaults.
import { configFromEnv, type Environment, fieldFromText } from "../config/env.ts";
import { type LayeredConfig, layerConfig } from "../config/origin.ts";
import type { CacheConfig } from "../config/types.ts";
import { configFromYaml } from "../config/yaml.ts";
import type { GlobalFlags } from "./global-flags.ts";

function configFromFlags({ kvUrl, prefix, timeout }: GlobalFlags): CacheConfig {
  return {
    ...(kvUrl === undefined ? {} : { kvUrl: fieldFromText("kvUrl", kvUrl, "--kv-url") }),
    ...(prefix === undefined ? {} : { keyPrefix: fieldFromText("keyPrefix", prefix, "--prefix") }),
    ...(timeout === undefined ? {} : { operationTimeout: timeout, connectTimeout: timeout }),
  };
}

/** Throws ConfigError that names the flag, variable, or line of the file at fault. */
export function readSettings(flags: GlobalFlags, env: Environment): LayeredConfig {
  return layerConfig({
    flags: configFromFlags(flags),
    env: configFromEnv(env),
    file: flags.config === undefined ? {} : configFromYaml(flags.config),
  });
}
