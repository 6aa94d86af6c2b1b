// Configuration from `XCACHE_*` environment variables, one for every field that can be written as text.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { editDistance } from "../core/suggest-name.ts";
import { CODE, HIDDEN, type Place, rejectValue } from "./place.ts";
import { envName, type Field, type FieldName, fieldNames, fields } from "./schema.ts";
import type { CheckedConfig, ResolvedConfig } from "./types.ts";

const ENV_PREFIX = "XCACHE_";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Parses one field from text. `label` is the variable or flag the user set. Throws ConfigError naming it. */
export function fieldFromText<Name extends FieldName>(
  field: Name,
  text: string,
  label: string,
): Exclude<ResolvedConfig[Name], undefined> {
  const place: Place = { origin: CODE, path: [label] };
  const { shape, codeOnly }: Field<unknown> = fields()[field];
  if (shape.fromText === undefined) {
    const where = codeOnly ? "can only be set in code" : "can only be set in a config object or file";
    return rejectValue(place, `${shape.expected}, which ${where}`, shape.isSecret ? HIDDEN : text);
  }
  const given = shape.fromText(text);
  if (shape.expectedText !== undefined && typeof given === "string") {
    return rejectValue(place, shape.expectedText, text);
  }
  return shape.check(given, place) as Exclude<ResolvedConfig[Name], undefined>;
}

const MAX_TYPOS = 2;

/** Whether a variable is probably a misspelling of one of ours: a typo, or only the last words of a name. */
function resembles(variable: string, known: string): boolean {
  const given = variable.slice(ENV_PREFIX.length);
  const name = known.slice(ENV_PREFIX.length);
  if (given.replaceAll("_", "") === name.replaceAll("_", "") || name.endsWith(`_${given}`)) return true;
  return editDistance(given, name) <= Math.min(MAX_TYPOS, Math.floor(name.length / 3));
}

function rejectTypos(variables: readonly string[]): void {
  const known = fieldNames().map(envName);
  for (const variable of variables) {
    if (!variable.startsWith(ENV_PREFIX) || variable.length > 64 || known.includes(variable)) continue;
    const meant = known.find((name) => resembles(variable, name));
    if (meant === undefined) continue;
    throw new ConfigError("CONFIG_UNKNOWN_FIELD", `unknown variable ${variable}: did you mean ${meant}?`);
  }
}

/**
 * The fields set in the environment, checked. An empty variable counts as unset. A variable similar to one of ours is
 * rejected as a typo; other `XCACHE_*` variables are ignored. Throws ConfigError naming the variable.
 */
export function configFromEnv(env: Environment): CheckedConfig {
  if (typeof env !== "object" || env === null) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `env must be an object of environment variables, such as process.env, got ${describeArrival(env)}`,
    );
  }
  rejectTypos(Object.keys(env).filter((variable) => env[variable] !== undefined && env[variable] !== ""));
  const given = fieldNames().flatMap((field) => {
    const variable = envName(field);
    const text: unknown = env[variable];
    if (text === undefined || text === "") return [];
    if (typeof text !== "string") return rejectValue({ origin: CODE, path: [variable] }, "a string", text);
    return [[field, fieldFromText(field, text, variable)]];
  });
  return Object.fromEntries(given) as CheckedConfig;
}
